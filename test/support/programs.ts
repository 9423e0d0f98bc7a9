// The programs of the machine that some tests need. Debian has nginx in /usr/sbin, which is not on the path of its ordinary users: a
// program there counts as installed, for this process and those that it starts.

import { spawnSync } from 'node:child_process'

process.env.PATH = `${process.env.PATH}:/usr/local/sbin:/usr/sbin`

/** Whether a command runs and ends well. */
export const runs = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0

/** For tests with a program: false, or why they are skipped. @param words a command that ends well where the program is there */
export const without = (what: string, ...[command = '', ...args]: string[]): string | false =>
  !runs(command, ...args) && `needs ${what}`

export const hasCurl = (): boolean =>
  spawnSync('curl', ['-V'], { encoding: 'utf8' }).stdout?.includes('HTTP2') === true

/** For tests that fail without HTTP/2, or would prove less than they say. */
export const withoutCurl = (): string | false => !hasCurl() && 'needs a curl with HTTP/2'
