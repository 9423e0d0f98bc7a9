// A worker thread of a replay: one sender with its share of the arrivals. It starts when all workers are ready, and reports progress.

import { once } from 'node:events'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { createRecorder } from './recorder.ts'
import { createRequestRows } from './request-log.ts'
import { monotonicMs, Sender } from './sender.ts'
import type { FromWorker, ToWorker, WorkerOrder } from './senders.ts'

const liveEveryMs = 500

const port = parentPort as MessagePort
const post = (message: FromWorker, given: ArrayBuffer[] = []): void => port.postMessage(message, given)
const { order, stepSeconds, isLogged } = workerData as WorkerOrder

const begins = once(port, 'message') as Promise<[ToWorker]>
post('ready')
const [first] = await begins
const beginAt = typeof first === 'object' ? first.beginAt : monotonicMs()
const recorder = createRecorder(stepSeconds, order.pace.warmUpMs)
const rows = isLogged
  ? createRequestRows(block => post({ block }, [block.rows.buffer]), order.share.of)
  : undefined
const sender = new Sender({ ...order, beginAt }, rows?.logging(recorder) ?? recorder)
port.on('message', (message: ToWorker) => (message === 'taken' ? rows?.taken() : sender.stop()))
if (first === 'stop') sender.stop()
const timer = setInterval(() => {
  rows?.flush()
  post({ live: { counts: recorder.counts, recent: sender.load.recent() } })
}, liveEveryMs)
await sender.ended
clearInterval(timer)
rows?.flush()
post({
  ended: {
    form: recorder.form(),
    load: sender.load.form(),
    kept: sender.kept,
    sentForMs: sender.sentFor(),
    answeredForMs: sender.answeredFor(),
    unlogged: rows?.lost() ?? 0,
  },
})
port.close()
