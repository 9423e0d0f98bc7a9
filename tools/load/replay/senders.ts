// The worker threads of a run, each with its share of the arrivals. Merges what they recorded.

import { Worker } from 'node:worker_threads'
import { messageOf } from 'abohawa/common/errors.ts'
import { addEncoded, coarse } from './histograms.ts'
import { type KeptBody, oneEach } from './kept-bodies.ts'
import type { LoadForm } from './load.ts'
import { addCounts, type Counts, createRecorder, noCounts, type RecorderForm } from './recorder.ts'
import type { RowBlock } from './request-log.ts'
import { monotonicMs, type SendOrder } from './sender.ts'

/** The progress of a sender; `recent` has the latencies since the last message. */
type Live = { readonly counts: Counts; readonly recent: string }
export type FromWorker =
  | 'ready'
  | { readonly live: Live }
  | { readonly block: RowBlock }
  | { readonly ended: Ended }
/** `taken`: a block of the log was written. `beginAt`: all workers are ready. */
export type ToWorker = 'stop' | 'taken' | { readonly beginAt: number }
export type WorkerOrder = {
  readonly order: Omit<SendOrder, 'beginAt'>
  readonly stepSeconds: number
  readonly isLogged: boolean
}
type Ended = {
  readonly form: RecorderForm
  readonly load: LoadForm
  readonly kept: readonly KeptBody[]
  readonly sentForMs: number
  readonly answeredForMs: number
  readonly unlogged: number
}

export type LiveFigures = {
  readonly counts: Counts
  /** In ms, of the requests since the last figures; undefined without any. */
  readonly p50: number | undefined
  readonly p99: number | undefined
}

// From the message to the first due instant.
const leadMs = 20

type SendingEvents = {
  onBegin(): void
  /** Every half second. */
  onLive(figures: LiveFigures): void
  readonly onBlock: ((block: RowBlock, taken: () => void) => void) | undefined
}

export const startSending = (
  order: Omit<SendOrder, 'share' | 'beginAt'>,
  workers: number,
  stepSeconds: number,
  { onBegin, onLive, onBlock }: SendingEvents,
) => {
  const { connections, keepBodies } = order
  const latest = new Map<number, Live>()
  let [ready, done] = [0, 0]
  const parts = Array.from({ length: workers }, (_, index) => {
    const workerData: WorkerOrder = {
      order: {
        ...order,
        share: { index, of: workers },
        connections: Math.max(1, Math.floor(connections / workers) + (index < connections % workers ? 1 : 0)),
        keepBodies: Math.ceil(keepBodies / workers),
      },
      stepSeconds,
      isLogged: onBlock !== undefined,
    }
    const worker = new Worker(new URL('worker.ts', import.meta.url), { workerData })
    const post = (message: ToWorker): void => worker.postMessage(message)
    const { promise: ended, resolve, reject } = Promise.withResolvers<Ended>()
    worker.on('message', (message: FromWorker) => {
      if (message === 'ready') {
        ready += 1
        if (ready === workers) begin()
      } else if ('ended' in message) {
        done += 1
        resolve(message.ended)
      } else if ('block' in message) onBlock?.(message.block, () => post('taken'))
      else {
        latest.set(index, message.live)
        if (latest.size < workers - done) return
        onLive(figuresOf([...latest.values()]))
        latest.clear()
      }
    })
    worker.on('error', error =>
      reject(new Error(`a worker of the replay failed: ${messageOf(error)}`, { cause: error })),
    )
    worker.on('exit', code =>
      reject(new Error(`a worker of the replay ended with ${code} before its work was done`)),
    )
    return { worker, ended, post }
  })
  // Waits until all workers run, so that none starts late.
  const begin = (): void => {
    onBegin()
    const beginAt = monotonicMs() + leadMs
    for (const { post } of parts) post({ beginAt })
  }
  return {
    /** Resolves when all requests are answered or given up. Rejects when a worker fails. */
    ended: endOf(parts).then(all => {
      const recorder = createRecorder(stepSeconds)
      for (const { form } of all) recorder.add(form)
      return {
        recorder,
        loads: all.map(({ load }) => load),
        kept: oneEach(all.flatMap(({ kept }) => kept)),
        sentForMs: Math.max(...all.map(({ sentForMs }) => sentForMs)),
        answeredForMs: Math.max(...all.map(({ answeredForMs }) => answeredForMs)),
        unlogged: all.reduce((sum, { unlogged }) => sum + unlogged, 0),
      }
    }),
    stop: (): void => {
      for (const { post } of parts) post('stop')
    },
  }
}

type Part = { readonly worker: Worker; readonly ended: Promise<Ended> }

/** Where one fails, the others send no more. */
const endOf = async (parts: readonly Part[]): Promise<Ended[]> => {
  try {
    return await Promise.all(parts.map(({ ended }) => ended))
  } catch (error) {
    await Promise.all(parts.map(({ worker }) => worker.terminate()))
    throw error
  }
}

const figuresOf = (lives: readonly Live[]): LiveFigures => {
  const counts = noCounts()
  for (const live of lives) addCounts(counts, live.counts)
  const recent = addEncoded(coarse(), ...lives.map(each => each.recent))
  const at = (percent: number) =>
    recent.totalCount === 0 ? undefined : recent.getValueAtPercentile(percent) / 1000
  return { counts, p50: at(50), p99: at(99) }
}
