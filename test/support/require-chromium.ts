// Ensures a real Chromium for the tests of pages: an installed one, or Debian's package where it can be installed. Otherwise
// those tests are skipped, and in CI it fails.

import { browser } from './browser.ts'
import { installPackage, runs } from './debian-package.ts'

if (browser === undefined && !(installPackage('chromium') && runs('chromium', '--version'))) {
  process.stderr.write(
    'No Chromium was found and none could be installed, so the tests with a browser are skipped: install chromium (on Debian: apt-get install chromium).\n',
  )
  if (process.env.CI) process.exitCode = 1
}
