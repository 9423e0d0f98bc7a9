// A worker thread of a replay: one sender with its share of the arrivals, which it is given when it starts. It begins when all
// workers are ready.

import { once } from 'node:events'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { monotonicMs } from './sender.ts'
import { type FromWorker, sendHere, type ToWorker, type WorkerOrder } from './senders.ts'

const port = parentPort as MessagePort
const post = (message: FromWorker): void => port.postMessage(message)
const { order, stepSeconds, log } = workerData as WorkerOrder

const begins = once(port, 'message') as Promise<[ToWorker]>
post('ready')
const [first] = await begins
const beginAt = first === 'stop' ? monotonicMs() : first.beginAt
const { ended, stop } = sendHere({ ...order, beginAt }, stepSeconds, live => post({ live }), log)
if (first === 'stop') stop()
port.on('message', stop)
post({ ended: await ended })
port.close()
