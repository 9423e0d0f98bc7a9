// Installs what tests need from Debian, where it is missing and can be installed. Whoever requires it says what to do
// otherwise.

import { execFileSync } from 'node:child_process'

/** Whether a command runs and ends well. */
export const runs = (command: string, ...args: string[]): boolean => {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

// Without the run level a package would start its server.
const install = (names: readonly string[]): boolean =>
  runs(
    'env',
    'RUNLEVEL=1',
    'DEBIAN_FRONTEND=noninteractive',
    'apt-get',
    'install',
    '-y',
    '-qq',
    '--no-install-recommends',
    ...names,
  )

/** Installs packages, as far as that is possible: all at once, or one by one where a release lacks one of them. */
export const installPackages = (names: readonly string[]): void => {
  process.stderr.write(`The tests need ${names.join(', ')}; installing from Debian…\n`)
  if (!runs('apt-get', 'update', '-qq') || install(names) || names.length === 1) return
  for (const name of names) install([name])
}
