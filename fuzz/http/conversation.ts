// One connection to the gateway: sends bytes in chunks at given offsets, with pauses, and ends in one of several ways;
// parses what comes back strictly until the connection is over. Timeouts are bounds and never decide what is sent.

import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { type Finding, finding, slowness } from '../finding.ts'
import type { Address } from '../system/gateway-process.ts'
import { type Answer, createResponseReader, type IsHead, type ResponseReader } from './response-reader.ts'

/** How bytes are sent. */
export type Delivery = {
  /** Where the bytes are cut, each a fraction of their length. */
  readonly cuts: readonly number[]
  /** Milliseconds before each chunk but the first. */
  readonly pauseMs: number
  /**
   * `answers`: wait for the expected number of responses, then close. `close`: wait until the gateway closes. `quiet`: wait
   * until nothing more comes, then close. `half-close`: end the sending side at once. `reset`: reset at once.
   */
  readonly ending: 'answers' | 'close' | 'quiet' | 'half-close' | 'reset'
}

export type Transcript = {
  readonly answers: readonly Answer[]
  readonly findings: readonly Finding[]
  /** Whether the connection was reset; responses in flight are lost then. */
  readonly isReset: boolean
}

export const whole: Delivery = { cuts: [], pauseMs: 0, ending: 'answers' }

const quietMs = 40
const surplusMs = 10
const longestQuietMs = 700
/** Longer than a request may take to arrive, and longer than a busy machine delays it. */
const patienceMs = 10_000

/** @param expected how many responses `answers` waits for */
export const converse = async (
  { host, port }: Address,
  bytes: Buffer,
  delivery: Delivery,
  isHead: IsHead,
  expected = 1,
): Promise<Transcript> => {
  const socket = connect({ host, port, noDelay: true, allowHalfOpen: true })
  const reader = createResponseReader(isHead)
  const line = watch(socket, reader)
  await line.connected
  await send(socket, bytes, delivery, line)
  if (delivery.ending === 'reset') {
    socket.resetAndDestroy()
    return { answers: [], findings: [], isReset: true }
  }

  const isWaitedFor = { answers: expected, close: Number.POSITIVE_INFINITY, quiet: 1, 'half-close': 0 }[
    delivery.ending
  ]
  const waitMs = delivery.ending === 'quiet' ? longestQuietMs : patienceMs
  const isInTime = await line.until(
    () => reader.answers.length >= isWaitedFor || reader.fault !== undefined,
    waitMs,
  )
  if (delivery.ending === 'quiet') while (await line.receivesWithin(quietMs));
  // A surplus response would follow at once.
  else if (delivery.ending === 'answers') await line.receivesWithin(surplusMs)
  if (!socket.destroyed) socket.end()
  const isOver = await line.until(() => false, patienceMs)
  socket.destroy()
  return {
    answers: reader.answers,
    isReset: line.isReset(),
    findings: [
      ...(reader.fault === undefined ? [] : [finding('the answer is not HTTP/1.1', reader.fault)]),
      ...(reader.isInside &&
      isOver &&
      reader.fault === undefined &&
      delivery.ending !== 'half-close' &&
      !line.isReset()
        ? [finding('an answer breaks off', `${reader.answers.length} whole ones before it`)]
        : []),
      ...(isInTime || delivery.ending === 'quiet'
        ? []
        : [slow(`${reader.answers.length} of ${isWaitedFor} answers within ${patienceMs} ms`)]),
      ...(isOver ? [] : [slow(`the connection is open ${patienceMs} ms after our side ended`)]),
    ],
  }
}

const slow = (detail: string): Finding => slowness('no answer, or no end', detail)

type Line = {
  /** Resolves when connected; rejects when refused. */
  readonly connected: Promise<void>
  isClosed(): boolean
  isReset(): boolean
  /** Waits until the condition holds or the gateway closes; false after the deadline. */
  until(holds: () => boolean, withinMs: number): Promise<boolean>
  /** Whether bytes arrive before the deadline or the close. */
  receivesWithin(ms: number): Promise<boolean>
}

const watch = (socket: Socket, reader: ResponseReader): Line => {
  let closed = false
  let reset = false
  let received = 0
  let wake = Promise.withResolvers<void>()
  const stir = (): void => {
    wake.resolve()
    wake = Promise.withResolvers()
  }
  const { promise: connected, resolve, reject } = Promise.withResolvers<void>()
  // An unexpected reset counts as a close.
  socket.on('error', error => {
    reject(error)
    reset = true
    closed = true
    stir()
  })
  socket.once('connect', resolve)
  socket.on('data', (chunk: Buffer) => {
    received += 1
    reader.push(chunk)
    stir()
  })
  for (const event of ['end', 'close'])
    socket.once(event, () => {
      closed = true
      stir()
    })
  const waitFor = async (holds: () => boolean, withinMs: number): Promise<boolean> => {
    const deadline = performance.now() + withinMs
    for (;;) {
      if (holds()) return true
      const left = deadline - performance.now()
      if (left <= 0) return false
      const timer = new AbortController()
      const late = pause(left, undefined, { signal: timer.signal }).catch(() => {})
      await Promise.race([wake.promise, late])
      timer.abort()
    }
  }
  return {
    connected,
    isClosed: () => closed,
    isReset: () => reset,
    until: (holds, withinMs) => waitFor(() => closed || holds(), withinMs),
    receivesWithin: async ms => {
      const before = received
      await waitFor(() => closed || received > before, ms)
      return received > before && !closed
    },
  }
}

const send = async (
  socket: Socket,
  bytes: Buffer,
  { cuts, pauseMs }: Delivery,
  line: Line,
): Promise<void> => {
  const places = cuts.map(share => Math.floor(share * bytes.length)).toSorted((one, other) => one - other)
  let from = 0
  for (const to of [...places, bytes.length]) {
    if (line.isClosed()) return
    if (to === from) continue
    if (from > 0 && pauseMs > 0) await pause(pauseMs)
    if (socket.writable) socket.write(bytes.subarray(from, to))
    from = to
  }
}
