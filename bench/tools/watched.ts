// Loaded into a gateway with `--import`: measures the turns of its event loop, and moves its clock and that of its Redis as
// its parent says. The rest of the process is as users start it.

import { openSync, readSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'

/** Each is answered with a report. `collect`: collects all garbage before the memory is read. */
export type Order = { readonly aheadMs?: number; readonly collect?: boolean }

/** The longest in ms since the last report; memory in bytes. */
export type WatchedReport = {
  /** The processor time of the main thread between two ticks of a timer. */
  readonly turn: number
  /** The time between two ticks: with that in which other processes had the processor. */
  readonly delay: number
  readonly heapUsed: number
  readonly resident: number
}

const tickMs = 2

const machineNow = Date.now
let aheadMs = Number(process.env.BENCH_AHEAD_MS)
Date.now = () => machineNow() + aheadMs
const redisTime = Redis.prototype.time
Redis.prototype.time = async function time(this: Redis) {
  const [seconds, micros] = (await redisTime.call(this)).map(Number)
  const ms = (seconds ?? 0) * 1_000 + (micros ?? 0) / 1_000 + aheadMs
  return [Math.floor(ms / 1_000), Math.floor((ms % 1_000) * 1_000)]
} as typeof redisTime

// What the kernel has counted of the main thread, first its processor time in ns.
const schedule = openSync('/proc/self/schedstat', 'r')
const bytes = Buffer.alloc(100)
const processorMs = (): number =>
  Number(bytes.toString('latin1', 0, readSync(schedule, bytes, 0, bytes.length, 0)).split(' ', 1)[0]) / 1e6

let [turn, delay] = [0, 0]
let [lastAt, lastProcessor] = [performance.now(), processorMs()]
const tick = (): void => {
  const [at, processor] = [performance.now(), processorMs()]
  delay = Math.max(delay, at - lastAt)
  turn = Math.max(turn, processor - lastProcessor)
  lastAt = at
  lastProcessor = processor
}
setInterval(tick, tickMs).unref()

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

process.on('message', (order: Order) => {
  if (order.aheadMs !== undefined) aheadMs = order.aheadMs
  const longest = { turn, delay }
  if (order.collect) collect()
  const { heapUsed, rss } = process.memoryUsage()
  process.send?.({ ...longest, heapUsed, resident: rss } satisfies WatchedReport)
  // A turn later: a collection that was requested is not the gateway's.
  setTimeout(() => {
    tick()
    ;[turn, delay] = [0, 0]
  }, tickMs)
})
// The gateway ends though its parent could still ask.
process.channel?.unref()
