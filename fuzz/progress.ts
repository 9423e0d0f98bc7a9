// Reports progress on standard error: one line that is rewritten on a terminal, else a line at intervals.

import type { TargetName } from './target.ts'

const onTerminalEveryMs = 200
const elsewhereEveryMs = 10_000

export type Progress = {
  show(target: TargetName, cases: number, seconds: number, secondsLeft: number, faults: number): void
  /** A line that is not overwritten. */
  say(text: string): void
  clear(): void
}

export const createProgress = (stream: NodeJS.WriteStream = process.stderr): Progress => {
  let shownAt = performance.now()
  const clear = (): void => {
    if (stream.isTTY) stream.write('\r\x1b[K')
  }
  return {
    show: (target, cases, seconds, secondsLeft, faults) => {
      if (performance.now() - shownAt < (stream.isTTY ? onTerminalEveryMs : elsewhereEveryMs)) return
      shownAt = performance.now()
      const rate = Math.round(cases / Math.max(seconds, 0.001))
      const text = `${target}: ${cases} cases, ${rate}/s, ${faults} faults, ${Math.ceil(secondsLeft)} s left`
      stream.write(stream.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
    },
    say: text => {
      clear()
      stream.write(`${text}\n`)
    },
    clear,
  }
}
