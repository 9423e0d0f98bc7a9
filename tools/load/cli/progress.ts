// How far a command of minutes is, and the command line as its result has it.

import type { Terminal } from 'abohawa/command-line/terminal.ts'
import { withoutKeys } from 'abohawa/common/key-redaction.ts'

/** The command line of this process as a shell reads it, without keys. */
export const commandLine = (): string =>
  withoutKeys(
    ['abohawa', ...process.argv.slice(2)]
      .map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
      .join(' '),
  )

/**
 * What is left of work of which a share is done after so many seconds: `, 1 min 20 s left`. Empty until enough is done to
 * tell, because work begins more slowly than it goes on.
 */
export const leftText = (share: number, seconds: number): string => {
  if (share < 0.02 || (share < 0.1 && seconds < 10)) return ''
  const left = Math.ceil((seconds * Math.max(0, 1 - share)) / share)
  return left < 60 ? `, ${left} s left` : `, ${Math.floor(left / 60)} min ${left % 60} s left`
}

const remarkEveryMs = 10_000

/** Shows how far a command of minutes is: on the line that is replaced, or where no terminal shows it, as a remark now and then. */
export const createProgressLine = ({ progress, remark }: Pick<Terminal, 'progress' | 'remark'>) => {
  let remarkedAt = performance.now()
  return (line: string): void => {
    const now = performance.now()
    if (process.stderr.isTTY) progress(line)
    else if (now - remarkedAt >= remarkEveryMs) {
      remarkedAt = now
      remark(line)
    }
  }
}

const showEveryMs = 250

/**
 * Shows a line at most every quarter of a second, with what is left of the work where a share of it is known.
 * @param line shows it
 */
export const createProgress = (line: (text: string) => void) => {
  const began = performance.now()
  let shownAt = began
  return (share: number | undefined, text: () => string): void => {
    const now = performance.now()
    if (now - shownAt < showEveryMs) return
    shownAt = now
    line(`${text()}${share === undefined ? '' : leftText(share, (now - began) / 1000)}`)
  }
}
