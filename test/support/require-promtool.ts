// Ensures promtool for the tests of the alert rules: an installed one, or the one in Debian's package of Prometheus where it
// can be installed. Otherwise it fails with one sentence that says what to do.

import { installPackage, runs } from './debian-package.ts'

const isThere = () => runs('promtool', '--version')

if (!isThere() && !(installPackage('prometheus') && isThere())) {
  process.stderr.write(
    'The tests need promtool and it could not be installed: put it on the path (on Debian: apt-get install prometheus).\n',
  )
  process.exitCode = 1
}
