// The log of each request of a run, as one file. A sender puts numbers into blocks and posts full ones to a thread of its own
// (request-log-writer.ts), which makes the lines and gives the blocks back: a sender neither formats nor waits. There are so
// many blocks and no more; while the file takes them too slowly, requests are left out of it and counted.

import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { messageOf } from '../../common/errors.ts'
import type { Instants, Recorder } from './recorder.ts'
import type { Schedule } from './schedule.ts'

/** Numbers of a row, in this order. `sent` is NaN for a request that was dropped, `status` for one without an answer. */
export const rowFields = ['request', 'due', 'sent', 'end', 'status', 'name'] as const

/** Rows from a sender. */
export type RowBlock = {
  readonly rows: Float64Array
  readonly count: number
  /** Outcomes and reasons of failures, by the number in `name`. */
  readonly names: readonly string[]
}
export type FromSender = RowBlock | { readonly lost: number }

export type LogTask = {
  readonly path: string
  readonly schedule: Pick<Schedule, 'form' | 'key' | 'forms' | 'keys'>
  readonly warmUpMs: number
  readonly ports: readonly MessagePort[]
}

export type Logged = {
  /** Requests that are not in the file, because it took them too slowly. */
  readonly lost: number
  /** Why there is no file. */
  readonly fault: string | undefined
}

type RequestLog = {
  /** One for each sender. */
  readonly ports: readonly MessagePort[]
  /** Resolves when all senders have ended and the file is whole. */
  readonly ended: Promise<Logged>
  /** For a run that failed. */
  cancel(): void
}

const rowsOfBlock = 1_024
// 25 MB, half a million requests: some seconds of what a core sends.
const maxBlocks = 512

/** Resolves when the thread has started, so that it takes no time of the first requests. */
export const startRequestLog = async (
  path: string,
  { form, key, forms, keys }: Schedule,
  warmUpMs: number,
  senders: number,
): Promise<RequestLog> => {
  const channels = Array.from({ length: senders }, () => new MessageChannel())
  const ports = channels.map(({ port2 }) => port2)
  const workerData: LogTask = { path, schedule: { form, key, forms, keys }, warmUpMs, ports }
  const worker = new Worker(new URL('request-log-writer.ts', import.meta.url), {
    workerData,
    transferList: ports,
  })
  const { promise: ended, resolve } = Promise.withResolvers<Logged>()
  worker.on('message', (message: 'ready' | Logged) => message !== 'ready' && resolve(message))
  worker.on('error', error => resolve({ lost: 0, fault: messageOf(error) }))
  worker.on('exit', code => resolve({ lost: 0, fault: `its thread ended with ${code}` }))
  await Promise.race([once(worker, 'message'), ended])
  return { ports: channels.map(({ port1 }) => port1), ended, cancel: () => void worker.terminate() }
}

/** The rows of one sender. */
export type RequestRows = {
  /** @param status undefined without an answer. @param name its outcome, or the reason of a failure */
  add(request: Instants & { readonly endedAt: number }, status: number | undefined, name: string): void
  /** Posts what there is, so that a slow run can be followed. */
  flush(): void
  end(): void
}

/** @param senders how many share the blocks */
export const createRequestRows = (port: MessagePort, senders: number): RequestRows => {
  const most = Math.max(2, Math.floor(maxBlocks / senders))
  const free: Float64Array<ArrayBuffer>[] = []
  const numbers = new Map<string, number>()
  let [made, count, lost] = [0, 0, 0]
  let rows: Float64Array<ArrayBuffer> | undefined
  port.on('message', (block: Float64Array<ArrayBuffer>) => free.push(block))
  port.unref()

  const take = (): Float64Array<ArrayBuffer> | undefined => {
    const block = free.pop()
    if (block || made === most) return block
    made += 1
    return new Float64Array(rowsOfBlock * rowFields.length)
  }
  const numberOf = (name: string): number => {
    const number = numbers.get(name)
    if (number !== undefined) return number
    numbers.set(name, numbers.size)
    return numbers.size - 1
  }
  const flush = (): void => {
    if (!rows || count === 0) return
    const block: RowBlock = { rows, count, names: [...numbers.keys()] }
    port.postMessage(block, [rows.buffer])
    rows = undefined
    count = 0
  }
  return {
    add: ({ request = 0, dueAt, sentAt, endedAt }, status, name) => {
      rows ??= take()
      if (!rows) {
        lost += 1
        return
      }
      const at = count * rowFields.length
      rows[at] = request
      rows[at + 1] = dueAt
      rows[at + 2] = sentAt
      rows[at + 3] = endedAt
      rows[at + 4] = status ?? Number.NaN
      rows[at + 5] = numberOf(name)
      count += 1
      if (count === rowsOfBlock) flush()
    },
    flush,
    end: () => {
      flush()
      const end: FromSender = { lost }
      port.postMessage(end)
    },
  }
}

/** A recorder that logs each request too. */
export const logging = (recorder: Recorder, rows: RequestRows): Recorder => ({
  ...recorder,
  record: observation => {
    recorder.record(observation)
    rows.add(observation, observation.status, observation.outcome)
  },
  fail: (reason, request) => {
    recorder.fail(reason, request)
    rows.add(request, undefined, reason)
  },
  drop: request => {
    recorder.drop(request)
    rows.add({ ...request, sentAt: Number.NaN }, undefined, '')
  },
})
