// Ensures the real programs that the tests need: redis-server, promtool, Chromium, nginx and curl, installed ones, or Debian's
// packages where they can be installed. Without Redis or promtool it fails with one sentence that says what to do; without
// Chromium, nginx or curl the tests with them are skipped, except in CI.

import { browser } from './browser.ts'
import { hasCurl } from './curl.ts'
import { installPackage, runs } from './debian-package.ts'

const has = (program: string) => () => runs(program, '--version')

/** Whether a program is there, or could be installed. */
const ensure = (isThere: () => boolean, program: string, debianPackage = program): boolean =>
  isThere() || (installPackage(debianPackage) && has(program)())

const say = (sentence: string): void => void process.stderr.write(`${sentence}\n`)

if (!process.env.ABOHAWA_TEST_REDIS_URL && !ensure(has('redis-server'), 'redis-server')) {
  say(
    'The tests need a real Redis and none could be installed: install redis-server (on Debian: apt-get install redis-server) or set ABOHAWA_TEST_REDIS_URL.',
  )
  process.exitCode = 1
}
if (!ensure(has('promtool'), 'promtool', 'prometheus')) {
  say(
    'The tests need promtool and it could not be installed: put it on the path (on Debian: apt-get install prometheus).',
  )
  process.exitCode = 1
}
if (!ensure(() => browser !== undefined, 'chromium')) {
  say(
    'No Chromium was found and none could be installed, so the tests with a browser are skipped: install chromium (on Debian: apt-get install chromium).',
  )
  if (process.env.CI) process.exitCode = 1
}
const hasNginx = () => runs('nginx', '-v')
if (!hasNginx() && !(installPackage('nginx-light') && hasNginx())) {
  say(
    'No nginx was found and none could be installed, so the tests with it are skipped: install nginx (on Debian: apt-get install nginx-light).',
  )
  if (process.env.CI) process.exitCode = 1
}
if (!hasCurl() && !(installPackage('curl') && hasCurl())) {
  say(
    'No curl with HTTP/2 was found and none could be installed, so the tests with it are skipped: install curl (on Debian: apt-get install curl).',
  )
  if (process.env.CI) process.exitCode = 1
}
