// A worker thread of a replay: one sender with its share of the arrivals, which it is given when it starts.

import { parentPort, workerData } from 'node:worker_threads'
import type { SendOrder } from './sender.ts'
import { type FromWorker, sendHere } from './senders.ts'

const { order, stepSeconds } = workerData as { order: SendOrder; stepSeconds: number }
const post = (message: FromWorker): void => parentPort?.postMessage(message)

const { ended, stop } = sendHere(order, stepSeconds, live => post({ live }))
parentPort?.on('message', stop)
post({ ended: await ended })
parentPort?.close()
