// Sends the requests of one worker at their due instants and records what becomes of them. Open loop: an instant does not
// wait for answers. A request that finds no free connection waits in line, its latency counting all the while, and is
// dropped when its patience ends. Closed loop: each connection sends the next request after its answer.

import type { Destination } from '../../common/endpoints.ts'
import type { Outcome } from '../traffic/traffic-request.ts'
import type { Answer } from './http1.ts'
import { http2Lanes } from './http2.ts'
import { http1Lanes, type Job, type Lane, type LaneEvents } from './lanes.ts'
import { createLoad, type Load } from './load.ts'
import { isOwnLimit } from './own-limits.ts'
import { type Arrivals, arrivalsOf, type Pace } from './pace.ts'
import type { Recorder } from './recorder.ts'
import type { RequestForm, Schedule } from './schedule.ts'
import type { Target } from './target.ts'
import { createWaitingLine } from './waiting-line.ts'

/** The parts of a sender; all plain values, so that a worker receives them as a message. */
export type SendOrder = {
  readonly schedule: Schedule
  readonly pace: Pace
  /** Sends arrivals `index`, `index + of`, `index + 2 × of`, … */
  readonly share: { readonly index: number; readonly of: number }
  /** By the column `key` of the schedule: the first is sent with requests that have no id of a key. */
  readonly keys: readonly (string | undefined)[]
  readonly target: Target
  readonly http: '1.1' | '2'
  readonly connections: number
  readonly patienceMs: number
  readonly timeoutMs: number
  /** How many bodies of answers are kept; those of each path and status first. */
  readonly keepBodies: number
  /** The begin of the run, in ms of `process.hrtime`, which all threads share. */
  readonly beginAt: number
}

/** An answer whose body was kept. */
export type KeptBody = {
  readonly path: string
  readonly endpoint: Destination
  readonly status: number
  readonly outcome: Outcome
  readonly encoding: string | undefined
  readonly body: Uint8Array
}

export type Sender = {
  /** Resolves when all is sent and answered, or given up. */
  readonly ended: Promise<void>
  /** Sends nothing more, and waits a moment for what is in flight. */
  stop(): void
  readonly load: Load
  readonly kept: readonly KeptBody[]
  /** How long the run took, in ms: until the last was due or sent, in a closed loop until the last ended or time was up. */
  ranFor(): number
}

type Sent = Job & {
  readonly arrival: number
  readonly request: number
  readonly dueAt: number
  readonly sentAt: number
}

/** Now, in ms, the same for all threads of the process. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

// A timer is up to a millisecond late: the last part of a wait is spent turning the event loop.
const spinMs = 1.5
const sweepEveryMs = 50
const graceMs = 2_000
// In a closed loop, so that a target which no connection reaches is not called thousands of times a second.
const reconnectMs = 100
// Failures of requests on a connection, and not of the connection.
const responding = new Set(['reset', 'closed', 'protocol', 'timeout', 'unanswered'])
const maxKeptBytes = 128 * 1_048_576

export const startSender = (order: SendOrder, recorder: Recorder): Sender => {
  const { schedule, pace, share, keys, target, patienceMs, timeoutMs, connections } = order
  const arrivals: Arrivals = arrivalsOf(schedule, pace)
  const isClosed = pace.mode === 'closed'
  const load = createLoad()
  const etags: (string | undefined)[] = []
  const kept: KeptBody[] = []
  const keptNames = new Set<string>()
  let keptBytes = 0
  // performance.now() of this thread at the begin of the run.
  const begin = performance.now() + (order.beginAt - monotonicMs())
  const now = (): number => performance.now() - begin
  const { promise: ended, resolve: onEnded } = Promise.withResolvers<void>()

  let arrival = share.index
  // No arrival is left, or a signal has ended the run: then what waits in line is not sent either.
  let isStopped = false
  let isCut = false
  let isOver = false
  let giveUpAt = Number.POSITIVE_INFINITY
  let [lastSentAt, lastEndedAt, cutAt] = [0, 0, 0]
  const endsAt = arrivals.endsAt ?? (isClosed ? Number.POSITIVE_INFINITY : 0)
  // In a closed loop, those that met a limit of this machine.
  const waiting = createWaitingLine()

  const events: LaneEvents<Sent> = {
    onAnswer: (job, { head, bytes, body }) => {
      load.worked()
      const endedAt = now()
      lastEndedAt = endedAt
      const { form, request, dueAt, sentAt } = job
      if (form.conditional && head.etag !== undefined) etags[form.representation] = head.etag
      const { endpoint } = form
      const { status, outcome, ageSeconds } = head
      recorder.record({ endpoint, outcome, status, request, dueAt, sentAt, endedAt, bytes, ageSeconds })
      load.ended(endedAt - dueAt)
      if (body) keep(job, { head, bytes, body })
    },
    onFailure: (job, reason) => {
      load.worked()
      if (isOwnLimit(reason)) {
        load.limited(reason)
        waiting.putBack(job.arrival)
        return
      }
      const endedAt = now()
      lastEndedAt = endedAt
      const { request, dueAt, sentAt, form } = job
      recorder.fail(reason, { request, dueAt, sentAt, endedAt, endpoint: form.endpoint })
      load.ended(endedAt - dueAt)
      if (isClosed && !responding.has(reason)) pausedUntil = now() + reconnectMs
    },
    onFree: () => {
      if (isClosed) fill()
      else sendWaiting()
      if (isStopped) endIfDone()
    },
  }
  let pausedUntil = 0
  const lanes =
    order.http === '2'
      ? http2Lanes<Sent>(target, connections, events)
      : http1Lanes<Sent>(target, connections, events)

  const wantsBody = (form: RequestForm): boolean =>
    kept.length < order.keepBodies &&
    keptBytes < maxKeptBytes &&
    form.method === 'GET' &&
    !keptNames.has(form.path)

  const keep = ({ form }: Sent, { head, body }: Answer): void => {
    // The first answer with weather in it; a 304 or an error may come before it.
    const name = head.status === 200 ? form.path : `${head.status} ${form.path}`
    if (!body || keptNames.has(name) || head.status === 304) return
    keptNames.add(name)
    keptBytes += body.length
    const { path, endpoint } = form
    const { status, outcome, encoding } = head
    kept.push({ path, endpoint, status, outcome, encoding, body })
  }

  const formOf = (request: number): RequestForm =>
    schedule.forms[schedule.form[request] as number] as RequestForm

  const send = (lane: Lane<Sent>, number: number, dueAt: number): void => {
    const request = arrivals.request(number)
    const form = formOf(request)
    const key = keys[schedule.key[request] as number]
    const etag = form.conditional ? etags[form.representation] : undefined
    const sentAt = now()
    lastSentAt = sentAt
    lane.send({
      form,
      key,
      etag,
      keepsBody: wantsBody(form),
      again: false,
      arrival: number,
      request,
      dueAt: isClosed ? sentAt : dueAt,
      sentAt,
    })
  }

  /** Sends what waits in line, and drops what has waited for too long. */
  const sendWaiting = (): void => {
    for (let number = waiting.first(); number !== undefined; number = waiting.first()) {
      const dueAt = arrivals.due(number)
      const waited = now() - dueAt
      if (isCut || waited > patienceMs) {
        const request = arrivals.request(number)
        recorder.drop({ request, dueAt, endedAt: dueAt + waited, endpoint: formOf(request).endpoint })
        load.ended(waited)
      } else {
        const lane = lanes.take()
        if (!lane) return
        send(lane, number, dueAt)
      }
      waiting.shift()
    }
  }

  /** Gives every free connection of a closed loop a request. */
  const fill = (): void => {
    for (;;) {
      const at = now()
      if (at < pausedUntil && !isCut) return
      const again = waiting.first()
      const isLate = isCut || at >= (pace.durationMs ?? Number.POSITIVE_INFINITY)
      if (isLate || (again === undefined && arrivals.due(arrival) === Number.POSITIVE_INFINITY)) {
        waiting.clear()
        stop()
        return
      }
      const lane = lanes.take()
      if (!lane) return
      send(lane, again ?? arrival, at)
      if (again === undefined) arrival += share.of
      else waiting.shift()
    }
  }

  const pump = (): void => {
    if (isOver) return
    load.turned()
    const at = now()
    let dueAt = arrivals.due(arrival)
    while (dueAt <= at && !isStopped) {
      if (dueAt >= pace.warmUpMs) load.due(now() - dueAt)
      const lane = waiting.first() === undefined ? lanes.take() : undefined
      if (lane) send(lane, arrival, dueAt)
      else waiting.push(arrival)
      load.worked()
      arrival += share.of
      dueAt = arrivals.due(arrival)
    }
    if (dueAt === Number.POSITIVE_INFINITY && !isStopped) stop()
    if (isStopped) return
    const wait = dueAt - now()
    if (wait > spinMs) setTimeout(pump, Math.min(wait - spinMs, 1_000))
    else setImmediate(pump)
  }

  const stop = (): void => {
    isStopped = true
    endIfDone()
  }

  const endIfDone = (): void => {
    if (isOver || lanes.busy.size > 0 || waiting.first() !== undefined) return
    isOver = true
    clearInterval(sweep)
    clearTimeout(warmedUp)
    lanes.close()
    load.end()
    onEnded()
  }

  // Requests are in the order of their sending, so the first one in time ends the pass.
  const sweep = setInterval(() => {
    const at = now()
    for (const [job, lane] of lanes.busy) {
      if (at >= giveUpAt) lane.end('unanswered')
      else if (at - job.sentAt > timeoutMs) lane.end('timeout')
      else break
    }
    if (!isClosed) sendWaiting()
    else fill()
    if (isStopped) endIfDone()
  }, sweepEveryMs)

  const warmedUp = pace.warmUpMs > 0 ? setTimeout(load.begin, Math.max(0, pace.warmUpMs - now())) : undefined

  const wait = -now()
  const start = isClosed ? fill : pump
  if (wait > spinMs) setTimeout(start, wait - spinMs)
  else setImmediate(start)

  return {
    ended,
    stop: () => {
      isCut = true
      cutAt = now()
      giveUpAt = cutAt + graceMs
      if (isClosed) fill()
      else sendWaiting()
      stop()
    },
    load,
    kept,
    ranFor: () => {
      if (isCut) return Math.max(lastSentAt, cutAt)
      // The time in which a target that stands still kept all from being sent is part of the run.
      return Math.max(lastSentAt, isClosed ? Math.min(lastEndedAt, endsAt) : endsAt)
    },
  }
}
