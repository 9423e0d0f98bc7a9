// Ensures the real programs that the tests need: redis-server, promtool, a headless Chromium, nginx and curl, installed ones, or
// Debian's packages where they can be installed. Without Redis or promtool it fails with one sentence that says what to do;
// without Chromium, nginx or curl the tests with them are skipped, except in CI.

import { browser, lightBrowser } from './browser.ts'
import { hasCurl } from './curl.ts'
import { installPackages, runs } from './debian-package.ts'
import './program-path.ts'

type Program = {
  readonly isThere: () => boolean
  readonly debianPackage: string
  /** What is said where the program is missing and can't be installed. */
  readonly otherwise: string
  /** Whether the tests fail without it outside of CI too. */
  readonly isRequired: boolean
}

const hasLightBrowser = () => runs(lightBrowser, '--version')

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
    isThere: () => hasLightBrowser() || (browser !== undefined && process.getuid?.() !== 0),
    debianPackage: lightBrowser,
    otherwise:
      'No Chromium was found and none could be installed, so the tests with a browser are skipped: install chromium (on Debian: apt-get install chromium-headless-shell).',
    isRequired: false,
  },
  {
    isThere: () => runs('nginx', '-v'),
    debianPackage: 'nginx-light',
    otherwise:
      'No nginx was found and none could be installed, so the tests with it are skipped: install nginx (on Debian: apt-get install nginx-light).',
    isRequired: false,
  },
  {
    isThere: hasCurl,
    debianPackage: 'curl',
    otherwise:
      'No curl with HTTP/2 was found and none could be installed, so the tests with it are skipped: install curl (on Debian: apt-get install curl).',
    isRequired: false,
  },
]

const missing = programs.filter(({ isThere }) => !isThere())
if (missing.length > 0) installPackages(missing.map(({ debianPackage }) => debianPackage))
for (const { isThere, debianPackage, otherwise, isRequired } of missing) {
  if (isThere() || (debianPackage === lightBrowser && browser !== undefined)) continue
  process.stderr.write(`${otherwise}\n`)
  if (isRequired || process.env.CI) process.exitCode = 1
}
