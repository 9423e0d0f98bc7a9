// The senders of a run: one in this thread, or several, each in a worker thread with its share of the arrivals. Gathers what
// they recorded into one recorder, and their figures on the way for the line of progress.

import { type MessagePort, Worker } from 'node:worker_threads'
import { messageOf } from '../../common/errors.ts'
import { sumOf } from './histograms.ts'
import type { LoadForm } from './load.ts'
import { type Counts, createRecorder, type Recorder, type RecorderForm } from './recorder.ts'
import { createRequestRows, logging } from './request-log.ts'
import { type KeptBody, monotonicMs, type SendOrder, startSender } from './sender.ts'

/** The figures of a sender on its way. */
export type Live = { readonly counts: Counts; readonly recent: string }
export type FromWorker = 'ready' | { readonly live: Live } | { readonly ended: Ended }
/** The begin of the run, once all are ready. */
export type ToWorker = 'stop' | { readonly beginAt: number }
/** The data that a worker is started with. */
export type WorkerOrder = {
  readonly order: Omit<SendOrder, 'beginAt'>
  readonly stepSeconds: number
  /** Where each request is logged, if it is. */
  readonly log: MessagePort | undefined
}
export type Ended = {
  readonly form: RecorderForm
  readonly load: LoadForm
  readonly kept: readonly KeptBody[]
  readonly ranForMs: number
}

/** Of all senders, since the begin and since the last figures. */
export type LiveFigures = {
  readonly counts: Counts
  /** In ms, of the requests that ended since the last figures; undefined without one. */
  readonly p50: number | undefined
  readonly p99: number | undefined
}

export type Sending = {
  /** Resolves when all is sent and answered, or given up. Rejects when a worker fails. */
  readonly ended: Promise<{
    readonly recorder: Recorder
    readonly loads: readonly LoadForm[]
    readonly kept: readonly KeptBody[]
    readonly ranForMs: number
  }>
  stop(): void
}

const liveEveryMs = 500
// From the order to begin to the first due instant.
const leadMs = 20

type Part = { readonly ended: Promise<Ended>; stop(): void; begin?(beginAt: number): void }
type Order = Omit<SendOrder, 'share' | 'beginAt'>

export type SendingEvents = {
  /** The first request is due in a moment. */
  onBegin(): void
  /** Every half second. */
  onLive(figures: LiveFigures): void
}

export const startSending = (
  order: Order,
  workers: number,
  stepSeconds: number,
  { onBegin, onLive }: SendingEvents,
  logs: readonly MessagePort[] = [],
): Sending => {
  const latest = new Map<number, Live>()
  const addLive = (index: number, live: Live): void => {
    latest.set(index, live)
    if (latest.size < workers) return
    onLive(figuresOf([...latest.values()]))
    latest.clear()
  }
  const parts = Array.from({ length: workers }, (_, index): Part => {
    const part = { ...order, ...shareOf(order, index, workers) }
    const onPart = (live: Live): void => addLive(index, live)
    const log = logs[index]
    return workers === 1
      ? sendHere({ ...part, beginAt: monotonicMs() + leadMs }, stepSeconds, onPart, log)
      : sendInWorker({ order: part, stepSeconds, log }, onReady, onPart)
  })
  let ready = 0
  // A worker takes a moment to start, and longer on a busy machine: none is to begin late for it.
  function onReady(): void {
    ready += 1
    if (ready < workers) return
    onBegin()
    const beginAt = monotonicMs() + leadMs
    for (const { begin } of parts) begin?.(beginAt)
  }
  if (workers === 1) onBegin()
  const ended = Promise.all(parts.map(part => part.ended)).then(all => {
    const recorder = createRecorder(stepSeconds)
    for (const { form } of all) recorder.add(form)
    return {
      recorder,
      loads: all.map(({ load }) => load),
      kept: all.flatMap(({ kept }) => kept),
      ranForMs: Math.max(...all.map(({ ranForMs }) => ranForMs)),
    }
  })
  return {
    ended,
    stop: () => {
      for (const part of parts) part.stop()
    },
  }
}

const shareOf = ({ connections, keepBodies }: Order, index: number, of: number) => ({
  share: { index, of },
  connections: Math.max(1, Math.floor(connections / of) + (index < connections % of ? 1 : 0)),
  keepBodies: Math.ceil(keepBodies / of),
})

/** One sender in this thread. */
export const sendHere = (
  order: SendOrder,
  stepSeconds: number,
  onLive: (live: Live) => void,
  log?: MessagePort,
) => {
  const recorder = createRecorder(stepSeconds, order.pace.warmUpMs)
  const rows = log && createRequestRows(log, order.share.of)
  const sender = startSender(order, rows ? logging(recorder, rows) : recorder)
  const timer = setInterval(() => {
    rows?.flush()
    onLive({ counts: structuredClone(recorder.counts), recent: sender.load.recent() })
  }, liveEveryMs)
  const ended = sender.ended.then((): Ended => {
    clearInterval(timer)
    rows?.end()
    return {
      form: recorder.form(),
      load: sender.load.form(),
      kept: sender.kept,
      ranForMs: sender.ranFor(),
    }
  })
  return { ended, stop: sender.stop }
}

const sendInWorker = (workerData: WorkerOrder, onReady: () => void, onLive: (live: Live) => void) => {
  const worker = new Worker(new URL('worker.ts', import.meta.url), {
    workerData,
    transferList: workerData.log ? [workerData.log] : [],
  })
  const post = (message: ToWorker): void => worker.postMessage(message)
  const { promise: ended, resolve, reject } = Promise.withResolvers<Ended>()
  worker.on('message', (message: FromWorker) => {
    if (message === 'ready') onReady()
    else if ('live' in message) onLive(message.live)
    else resolve(message.ended)
  })
  worker.on('error', error =>
    reject(new Error(`a worker of the replay failed: ${messageOf(error)}`, { cause: error })),
  )
  worker.on('exit', code =>
    reject(new Error(`a worker of the replay ended with ${code} before its work was done`)),
  )
  return { ended, stop: () => post('stop'), begin: (beginAt: number) => post({ beginAt }) }
}

const figuresOf = (lives: readonly Live[]): LiveFigures => {
  const all = createRecorder()
  for (const { counts } of lives) all.addCounts(counts)
  const recent = sumOf(lives.map(each => each.recent))
  const at = (percent: number) =>
    recent.totalCount === 0 ? undefined : recent.getValueAtPercentile(percent) / 1000
  return { counts: all.counts, p50: at(50), p99: at(99) }
}
