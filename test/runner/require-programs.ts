// Ensures the real programs that the tests need: redis-server, promtool, a headless Chromium, nginx and curl, installed ones, or
// Debian's packages where they can be installed. Without Redis or promtool it fails with one sentence that says what to do;
// without Chromium, nginx or curl the tests with them are skipped, except in CI.

import { browser, lightBrowser } from '../support/browser.ts'
import { hasCurl, runs } from '../support/programs.ts'

type Program = {
  readonly isThere: () => boolean
  readonly debianPackage: string
  /** What is said where the program is missing and can't be installed. */
  readonly otherwise: string
  /** Whether the tests fail without it outside of CI too. */
  readonly isRequired?: boolean
}

const skipped = (program: string, whose: string, debianPackage: string): string =>
  `No ${program} was found and none could be installed, so the tests ${whose} are skipped: install ${program.split(' ')[0]?.toLowerCase()} (on Debian: apt-get install ${debianPackage}).`

const programs: readonly Program[] = [
  {
    isThere: () => !!process.env.ABOHAWA_TEST_REDIS_URL || runs('redis-server', '--version'),
    debianPackage: 'redis-server',
    otherwise:
      'The tests need a real Redis and none could be installed: install redis-server (on Debian: apt-get install redis-server) or set ABOHAWA_TEST_REDIS_URL.',
    isRequired: true,
  },
  {
    isThere: () => runs('promtool', '--version'),
    debianPackage: 'prometheus',
    otherwise:
      'The tests need promtool and it could not be installed: put it on the path (on Debian: apt-get install prometheus).',
    isRequired: true,
  },
  {
    // Root gets the light one beside a usual one, because it needs a fifth of the time to start.
    isThere: () => runs(lightBrowser, '--version') || (browser !== undefined && process.getuid?.() !== 0),
    debianPackage: lightBrowser,
    otherwise: skipped('Chromium', 'with a browser', lightBrowser),
  },
  {
    isThere: () => runs('nginx', '-v'),
    debianPackage: 'nginx-light',
    otherwise: skipped('nginx', 'with it', 'nginx-light'),
  },
  { isThere: hasCurl, debianPackage: 'curl', otherwise: skipped('curl with HTTP/2', 'with it', 'curl') },
]

// Without the run level a package would start its server.
const aptGet = ['RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '--no-install-recommends']
const install = (names: readonly string[]): boolean => runs('env', ...aptGet, 'install', '-y', ...names)

const missing = programs.filter(({ isThere }) => !isThere())
const names = missing.map(({ debianPackage }) => debianPackage)
if (names.length > 0) {
  process.stderr.write(`The tests need ${names.join(', ')}; installing from Debian…\n`)
  // All at once, or one by one where a release lacks one of them.
  if (runs('apt-get', 'update', '-qq') && !install(names)) for (const name of names) install([name])
}
for (const { isThere, debianPackage, otherwise, isRequired } of missing) {
  if (isThere() || (debianPackage === lightBrowser && browser !== undefined)) continue
  process.stderr.write(`${otherwise}\n`)
  if (isRequired || process.env.CI) process.exitCode = 1
}
