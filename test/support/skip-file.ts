// Ends a test file whose every test needs a program that is not installed. The file counts as skipped, with the reason.

import root, { type Test } from 'tap'

/** Ends a file that shares its process with others, which go on. */
export class SkippedFile extends Error {}

/**
 * @param t what the file imports as tap
 * @param without why its tests are skipped; false where nothing is missing
 */
export const skipFileIf = (t: Pick<Test, 'plan'>, without: string | false): void => {
  if (without === false) return
  if (t !== root) throw new SkippedFile(without)
  t.plan(0, without)
  process.exit(0)
}
