// The words of every command that reads traffic while it does: faulty lines, how far it is, and what was left out.

import { stat } from 'node:fs/promises'
import { InputError } from '../../common/errors.ts'
import { standardInput } from '../../load/traffic/file-bytes.ts'
import { readTraffic, type TrafficSummary } from '../../load/traffic/read-traffic.ts'
import type { TrafficRequest } from '../../load/traffic/traffic-request.ts'
import { interruption } from '../interruption.ts'
import { counted, leftText, type Terminal } from '../terminal.ts'

export type ReadOptions = {
  readonly format?: string
  readonly host?: string
  readonly window?: number
  readonly strict?: boolean
}

const progressEveryMs = 250

/** Reads files until the command is interrupted, and shows faulty lines and how far it is, with what is left where it can be known. */
export const readFiles = async (
  terminal: Terminal,
  files: readonly string[],
  { format, host, window, strict }: ReadOptions,
) => {
  const faults = createFaults(terminal, strict)
  const traffic = readTraffic(files, { format, host, window, onFault: faults.add })
  const size = await sizeOfFiles(files)
  const began = performance.now()
  let shownAt = began
  let isInterrupted = false
  void interruption().then(() => {
    isInterrupted = true
  })
  const show = (requests: number): void => {
    const now = performance.now()
    if (now - shownAt < progressEveryMs) return
    shownAt = now
    const share = size ? Math.min(1, traffic.bytesRead() / size) : undefined
    const how = share === undefined ? '' : `, ${Math.floor(share * 100)} % read`
    const left = share === undefined ? '' : leftText(share, (now - began) / 1_000)
    terminal.progress(`${counted(requests)} requests${how}${left}`)
  }
  return {
    isInterrupted: () => isInterrupted,
    async *batches(): AsyncGenerator<TrafficRequest[], void, undefined> {
      let requests = 0
      for await (const batch of traffic.batches()) {
        if (isInterrupted) return
        requests += batch.length
        show(requests)
        yield batch
      }
    },
    /** When the last request was taken. */
    end: (): TrafficSummary => {
      terminal.progress('')
      faults.end()
      return traffic.summary()
    },
  }
}

/** Of all files, packed as they are; undefined where one has no size. */
const sizeOfFiles = async (files: readonly string[]): Promise<number | undefined> => {
  let size = 0
  for (const file of files) {
    const found = file === standardInput ? undefined : await stat(file).catch(() => undefined)
    if (!found?.isFile()) return undefined
    size += found.size
  }
  return size
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
