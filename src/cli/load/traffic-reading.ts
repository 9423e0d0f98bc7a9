// The words of every command that reads traffic while it does: faulty lines, how far it is, and what was left out.

import { stat } from 'node:fs/promises'
import { InputError } from '../../common/errors.ts'
import { standardInput } from '../../load/traffic/file-bytes.ts'
import type { Traffic, TrafficSummary } from '../../load/traffic/read-traffic.ts'
import { counted, leftText, type Terminal } from '../terminal.ts'

/** Of all files, packed as they are; undefined where one has no size. */
export const sizeOfFiles = async (files: readonly string[]): Promise<number | undefined> => {
  let size = 0
  for (const file of files) {
    const found = file === standardInput ? undefined : await stat(file).catch(() => undefined)
    if (!found?.isFile()) return undefined
    size += found.size
  }
  return size
}

const progressEveryMs = 250

/** Shows how far reading is, with what is left of it where the files have a size. */
export const watch = (
  terminal: Terminal,
  traffic: Traffic,
  size: number | undefined,
): ((requests: number) => void) => {
  const began = performance.now()
  let shownAt = began
  return requests => {
    const now = performance.now()
    if (now - shownAt < progressEveryMs) return
    shownAt = now
    const share = size ? Math.min(1, traffic.bytesRead() / size) : undefined
    const how =
      share === undefined
        ? ''
        : `, ${Math.floor(share * 100)} % read${leftText(share, (now - began) / 1_000)}`
    terminal.progress(`${counted(requests)} requests${how}`)
  }
}

const shownFaults = 10

/** Shows the first faulty lines in full, and counts the others. */
export const createFaults = (terminal: Terminal, isStrict = false) => {
  let count = 0
  return {
    add: ({ file, line, reason }: { file: string; line: number; reason: string }): void => {
      const sentence = `${file}:${line}: ${reason}`
      if (isStrict) throw new InputError(sentence)
      count += 1
      if (count > shownFaults) return
      terminal.progress('')
      terminal.remark(sentence)
    },
    end: (): void => {
      if (count > shownFaults) terminal.remark(`and ${counted(count - shownFaults)} more faulty lines.`)
    },
  }
}

/** What of the requests of a browser is no traffic; undefined where all are. */
export const leftOutText = ({ leftOut, files }: TrafficSummary): string | undefined => {
  const { cached, blocked, otherHosts } = leftOut
  const hosts = files.flatMap(({ host }) => host ?? []).join(' and ')
  const parts = [
    cached > 0 ? `${counted(cached)} from the browser's cache` : '',
    blocked > 0 ? `${counted(blocked)} without a response` : '',
    otherHosts > 0
      ? `${counted(otherHosts)} to other hosts${hosts === '' ? '' : ` than ${hosts}`} (--host chooses)`
      : '',
  ]
  return parts.filter(part => part !== '').join(', ') || undefined
}

/** For commands whose result does not say it. */
export const remarkLeftOut = (terminal: Pick<Terminal, 'remark'>, summary: TrafficSummary): void => {
  const text = leftOutText(summary)
  if (text !== undefined) terminal.remark(`Left out: ${text}.`)
}
