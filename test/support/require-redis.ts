// Ensures a real redis-server for the tests: the configured one, an installed one, or Debian's package where it can be
// installed. Otherwise it fails with one sentence that says what to do.

import { execFileSync } from 'node:child_process'

const runs = (command: string, ...args: string[]): boolean => {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

if (!process.env.ABOHAWA_TEST_REDIS_URL && !runs('redis-server', '--version')) {
  process.stderr.write('The tests need redis-server; installing the Debian package…\n')
  const installed =
    runs('apt-get', 'update', '-qq') &&
    // Without this the package would start a server on the default port.
    runs('sh', '-c', 'RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server') &&
    runs('redis-server', '--version')
  if (!installed) {
    process.stderr.write(
      'The tests need a real Redis and none could be installed: install redis-server (on Debian: apt-get install redis-server) or set ABOHAWA_TEST_REDIS_URL.\n',
    )
    process.exitCode = 1
  }
}
