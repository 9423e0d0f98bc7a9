// Ensures a real redis-server for the tests: the configured one, an installed one, or Debian's package where it can be
// installed. Otherwise it fails with one sentence that says what to do.

import { installPackage, runs } from './debian-package.ts'

const isThere = () => runs('redis-server', '--version')

if (!process.env.ABOHAWA_TEST_REDIS_URL && !isThere() && !(installPackage('redis-server') && isThere())) {
  process.stderr.write(
    'The tests need a real Redis and none could be installed: install redis-server (on Debian: apt-get install redis-server) or set ABOHAWA_TEST_REDIS_URL.\n',
  )
  process.exitCode = 1
}
