// Ends a test file whose every test needs a program that is not installed. The file counts as skipped, with the reason.

import t from 'tap'

/** @param without why its tests are skipped; false where nothing is missing */
export const skipFileIf = (without: string | false): void => {
  if (without === false) return
  t.plan(0, without)
  process.exit(0)
}
