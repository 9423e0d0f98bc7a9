// Ensures the real programs that the tests need: redis-server and Chromium, installed ones, or Debian's packages where they can
// be installed. Without Redis it fails with one sentence that says what to do; without Chromium the tests with a browser are
// skipped, except in CI.

import { execFileSync } from 'node:child_process'
import { browser } from './browser.ts'

const runs = (command: string, ...args: string[]): boolean => {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const install = (name: string): boolean => {
  process.stderr.write(`The tests need ${name}; installing the Debian package…\n`)
  return (
    runs('apt-get', 'update', '-qq') &&
    // Without this a package would start its server on the default port.
    runs('sh', '-c', `RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq ${name}`) &&
    runs(name, '--version')
  )
}

if (!process.env.ABOHAWA_TEST_REDIS_URL && !runs('redis-server', '--version') && !install('redis-server')) {
  process.stderr.write(
    'The tests need a real Redis and none could be installed: install redis-server (on Debian: apt-get install redis-server) or set ABOHAWA_TEST_REDIS_URL.\n',
  )
  process.exitCode = 1
}

if (browser === undefined && !install('chromium')) {
  process.stderr.write(
    'No Chromium was found and none could be installed, so the tests with a browser are skipped: install chromium (on Debian: apt-get install chromium).\n',
  )
  if (process.env.CI) process.exitCode = 1
}
