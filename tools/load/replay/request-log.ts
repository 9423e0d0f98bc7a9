// The log of requests of a run. Senders post blocks of numbers to the main thread, which formats and writes them, so that senders
// neither format nor wait. If the file is too slow, requests are left out and counted.

import { EventEmitter, on } from 'node:events'
import { messageOf } from 'abohawa/common/errors.ts'
import { writeText } from '../traffic/write-traffic.ts'
import type { Instants, Recorder } from './recorder.ts'
import type { RequestForm, Schedule } from './schedule.ts'

/** The numbers of a row. `sent` is NaN for a dropped request, `status` for one without a response. */
const rowFields = ['request', 'due', 'sent', 'end', 'status', 'name'] as const

export type RowBlock = {
  readonly rows: Float64Array<ArrayBuffer>
  readonly count: number
  /** Outcomes and reasons of failures, by the number in `name`. */
  readonly names: readonly string[]
}

const rowsOfBlock = 1_024
// 25 MB, half a million requests: what a core sends in some seconds.
const maxBlocks = 512

/** The rows of one sender. @param post transfers a block @param senders how many senders share the maximum */
export const createRequestRows = (post: (block: RowBlock) => void, senders: number) => {
  const most = Math.max(2, Math.floor(maxBlocks / senders))
  const numbers = new Map<string, number>()
  let [underWay, count, lost] = [0, 0, 0]
  let rows: Float64Array<ArrayBuffer> | undefined

  const numberOf = (name: string): number => {
    const number = numbers.get(name) ?? numbers.size
    if (number === numbers.size) numbers.set(name, number)
    return number
  }
  const flush = (): void => {
    if (!rows || count === 0) return
    underWay += 1
    post({ rows, count, names: [...numbers.keys()] })
    rows = undefined
    count = 0
  }
  const add = (
    { request = 0, dueAt, sentAt, endedAt }: Instants & { readonly endedAt: number },
    status: number,
    name: string,
  ): void => {
    if (!rows && underWay === most) {
      lost += 1
      return
    }
    rows ??= new Float64Array(rowsOfBlock * rowFields.length)
    const at = count * rowFields.length
    rows[at] = request
    rows[at + 1] = dueAt
    rows[at + 2] = sentAt
    rows[at + 3] = endedAt
    rows[at + 4] = status
    rows[at + 5] = numberOf(name)
    count += 1
    if (count === rowsOfBlock) flush()
  }
  return {
    add,
    flush,
    taken: (): void => {
      underWay -= 1
    },
    lost: (): number => lost,
    logging: (recorder: Recorder): Recorder => ({
      ...recorder,
      record: observation => {
        recorder.record(observation)
        add(observation, observation.status, observation.outcome)
      },
      fail: (reason, request) => {
        recorder.fail(reason, request)
        add(request, Number.NaN, reason)
      },
      drop: request => {
        recorder.drop(request)
        add({ ...request, sentAt: Number.NaN }, Number.NaN, '')
      },
    }),
  }
}

export type RequestLogFile = { readonly path: string; readonly force: boolean }

export const openRequestLog = ({ path, force }: RequestLogFile, schedule: Schedule, warmUpMs: number) => {
  const blocks = new EventEmitter()
  const arriving = on(blocks, 'block', { close: ['end'] }) as AsyncIterable<[RowBlock, () => void]>
  const linesOf = linesBy(schedule, warmUpMs)
  async function* text(): AsyncGenerator<string> {
    for await (const [block, taken] of arriving) {
      yield linesOf(block)
      taken()
    }
  }
  const written = writeText(path, text(), { force }).then(() => undefined, messageOf)
  return {
    /** @param taken called when the block was written */
    add: (block: RowBlock, taken: () => void): void => void blocks.emit('block', block, taken),
    /** Resolves when the file is complete, to the reason if it failed. */
    end: (): Promise<string | undefined> => {
      blocks.emit('end')
      return written
    },
  }
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

const linesBy = (schedule: Schedule, warmUpMs: number) => {
  const formTexts: string[] = []
  const formText = (number: number): string => {
    const { method, path } = schedule.forms[number] as RequestForm
    formTexts[number] ??= `"method":${JSON.stringify(method)},"path":${JSON.stringify(path)}`
    return formTexts[number]
  }
  return ({ rows, count, names }: RowBlock): string => {
    let lines = ''
    for (let at = 0; at < count * rowFields.length; at += rowFields.length) {
      const [request, due, sent] = [rows[at], rows[at + 1], rows[at + 2]] as [number, number, number]
      const [end, status, name] = [rows[at + 3], rows[at + 4], rows[at + 5]] as [number, number, number]
      const became = Number.isNaN(sent)
        ? '"dropped":true'
        : Number.isNaN(status)
          ? `"failed":"${names[name]}"`
          : `"status":${status},"outcome":"${names[name]}"`
      const sentText = Number.isNaN(sent) ? '' : `"sent":${rounded(sent)},`
      const warmUp = due < warmUpMs ? ',"warmUp":true' : ''
      const key = schedule.key[request] ?? 0
      const keyText = key === 0 ? '' : `,"key":${JSON.stringify(schedule.keys[key - 1])}`
      lines += `{"due":${rounded(due)},${sentText}"end":${rounded(end)},${became}${warmUp},${formText(schedule.form[request] as number)}${keyText}}\n`
    }
    return lines
  }
}
