// Installs what a test needs from Debian, where it is missing and can be installed. Whoever requires it says what to do
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

/** Installs a package; false where that fails. */
export const installPackage = (name: string): boolean => {
  process.stderr.write(`The tests need ${name}; installing the Debian package…\n`)
  // Without the run level the package would start its server.
  const install = `RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${name}`
  return runs('apt-get', 'update', '-qq') && runs('sh', '-c', install)
}
