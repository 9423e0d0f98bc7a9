// The progress of long commands, and the command line for results.

import type { Terminal } from 'abohawa/command-line/terminal.ts'
import { withoutKeys } from 'abohawa/common/key-redaction.ts'

/** The command line of this process as a shell reads it, without keys. */
export const commandLine = (): string =>
  withoutKeys(
    ['abohawa', ...process.argv.slice(2)]
      .map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
      .join(' '),
  )

/** The time left, as `, 1 min 20 s left`; empty at first, because work starts slowly. */
export const leftText = (share: number, seconds: number): string => {
  if (share < 0.02 || (share < 0.1 && seconds < 10)) return ''
  const left = Math.ceil((seconds * Math.max(0, 1 - share)) / share)
  return left < 60 ? `, ${left} s left` : `, ${Math.floor(left / 60)} min ${left % 60} s left`
}

const showEveryMs = 250
const remarkEveryMs = 10_000

/**
 * Shows progress on one line that is replaced, or without a terminal as a line every ten seconds.
 * @returns takes the share of the work that is done, if it is known, and the text
 */
export const createProgress = ({ progress, remark }: Pick<Terminal, 'progress' | 'remark'>) => {
  const began = performance.now()
  const everyMs = process.stderr.isTTY ? showEveryMs : remarkEveryMs
  let shownAt = began
  return (share: number | undefined, text: () => string): void => {
    const now = performance.now()
    if (now - shownAt < everyMs) return
    shownAt = now
    const line = `${text()}${share === undefined ? '' : leftText(share, (now - began) / 1000)}`
    if (process.stderr.isTTY) progress(line)
    else remark(line)
  }
}
