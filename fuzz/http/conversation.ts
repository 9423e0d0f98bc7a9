// One connection to a listener, over TCP or TLS: sends bytes in chunks at given offsets, with pauses, and ends in one of several
// ways; parses what comes back strictly until the connection is over. Timeouts are bounds and never decide what is sent.

import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import fc, { type Arbitrary } from 'fast-check'
import { demand, Fault } from '../fault.ts'
import { share } from '../target.ts'
import { bytesWithKey, requestText } from './request-text.ts'
import { type Answer, createResponseReader, type IsHead } from './response-reader.ts'

/**
 * `answers`: wait for the expected number of responses, then close. `close`: wait until the other side closes. `quiet`: wait
 * until nothing more comes, then close. `half-close`: end the sending side at once. `reset`: reset at once.
 */
export type Ending = 'answers' | 'close' | 'quiet' | 'half-close' | 'reset'

/** Where the bytes are cut, and the milliseconds before each chunk but the first. */
export type Cutting = { readonly cuts: readonly number[]; readonly pauseMs: number }

export const cuttings: Arbitrary<Cutting> = fc.record({
  cuts: fc.oneof(fc.constant([]), fc.array(share, { minLength: 1, maxLength: 20 })),
  pauseMs: fc.constantFrom(0, 0, 1, 2),
})

export type Talk = {
  /** The base address of the listener; `https:` for TLS. */
  readonly url: string
  readonly bytes: Buffer
  readonly cutting?: Cutting
  readonly ending?: Ending
  readonly isHead?: IsHead
  /** How many responses `answers` waits for. */
  readonly expected?: number
}

const quietMs = 40
const surplusMs = 10
const longestQuietMs = 700
/** Only a hang reaches it. Not that of the tests: the search for the smallest case meets it again and again. */
export const patienceMs = 60_000
const late = 'no answer, or no end'

/** `fault`: what is wrong with the bytes or the end. `isReset`: responses in flight are lost then. */
type Transcript = {
  readonly answers: readonly Answer[]
  readonly fault: Fault | undefined
  readonly isReset: boolean
}

export const converse = async (talk: Talk): Promise<Transcript> => {
  const { url, bytes, cutting, ending = 'answers', isHead = () => false, expected = 1 } = talk
  const { hostname: host, port, protocol } = new URL(url)
  const at = { host, port: Number(port), noDelay: true, allowHalfOpen: true }
  const isTls = protocol === 'https:'
  const socket = isTls
    ? connectTls({ ...at, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : connect(at)
  await new Promise((resolve, reject) =>
    socket.once(isTls ? 'secureConnect' : 'connect', resolve).once('error', reject),
  )
  const reader = createResponseReader(isHead)
  let [received, isClosed, isReset] = [0, false, false]
  let wake = (): void => {}
  const closed = (): void => {
    isClosed = true
    wake()
  }
  socket.on('data', (chunk: Buffer) => {
    received += 1
    reader.push(chunk)
    wake()
  })
  socket.on('error', () => {
    isReset = true
    closed()
  })
  socket.once('end', closed).once('close', closed)
  /** Waits until the condition holds or the other side closes; false after the deadline. */
  const until = async (holds: () => boolean, withinMs: number): Promise<boolean> => {
    const deadline = performance.now() + withinMs
    while (!isClosed && !holds()) {
      const left = deadline - performance.now()
      if (left <= 0) return false
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, left)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return true
  }
  /** Whether more comes within a time, and the other side has not closed. */
  const receivesWithin = async (ms: number): Promise<boolean> => {
    const before = received
    return (await until(() => received > before, ms)) && !isClosed
  }

  const places = (cutting?.cuts ?? []).map(place => Math.floor(place * bytes.length))
  let from = 0
  for (const to of [...places.sort((one, other) => one - other), bytes.length]) {
    if (isClosed || to === from) continue
    if (from > 0 && cutting?.pauseMs) await pause(cutting.pauseMs)
    if (socket.writable) socket.write(bytes.subarray(from, to))
    from = to
  }
  if (ending === 'reset') {
    if (isTls) socket.destroy()
    else socket.resetAndDestroy()
    return { answers: [], fault: undefined, isReset: true }
  }
  const wanted = { answers: expected, close: Number.POSITIVE_INFINITY, quiet: 1, 'half-close': 0 }[ending]
  const isInTime = await until(
    () => reader.answers.length >= wanted || reader.fault !== undefined,
    ending === 'quiet' ? longestQuietMs : patienceMs,
  )
  if (ending === 'quiet') while (await receivesWithin(quietMs));
  // A surplus response would follow at once.
  else if (ending === 'answers') await receivesWithin(surplusMs)
  if (!socket.destroyed) socket.end()
  const isOver = await until(() => false, patienceMs)
  socket.destroy()

  const { answers, fault, isInside } = reader
  const faultOf = (): Fault | undefined => {
    if (fault !== undefined) return new Fault('the answer is not HTTP/1.1', fault)
    if (isInside && isOver && ending !== 'half-close' && !isReset)
      return new Fault('an answer breaks off', `${answers.length} whole ones before it`)
    if (!isInTime && ending !== 'quiet')
      return new Fault(late, `${answers.length} of ${wanted} answers within ${patienceMs} ms`, true)
    return isOver ? undefined : new Fault(late, `the connection is open ${patienceMs} ms after our end`, true)
  }
  return { answers, fault: faultOf(), isReset }
}

/** The answers to one GET for each target, sent at once on one connection. @throws Fault when one is missing */
export const get = async (url: string, key: string, targets: readonly string[]): Promise<Answer[]> => {
  const bytes = bytesWithKey(targets.map(target => requestText({ target })).join(''), key)
  const { answers, fault } = await converse({ url, bytes, expected: targets.length })
  if (fault) throw fault
  demand(answers.length === targets.length, 'a request without an answer', answers.length)
  return [...answers]
}
