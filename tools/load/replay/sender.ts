// Sends the requests of one worker at their due instants and records what becomes of them. Open loop: an instant does not
// wait for answers. A request that finds no free connection waits in line, its latency counting all the while, and is
// dropped when its patience ends. Closed loop: each connection sends the next request after its answer.

import type { Destination } from 'abohawa/common/endpoints.ts'
import { type Answer, http1Lanes, type Job, type LaneEvents } from './http1.ts'
import { http2Lanes } from './http2.ts'
import { createLoad } from './load.ts'
import { isOwnLimit } from './own-limits.ts'
import { type Arrivals, arrivalsOf, type Pace } from './pace.ts'
import type { Recorder } from './recorder.ts'
import type { RequestForm, Schedule } from './schedule.ts'
import type { Target } from './target.ts'

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

export type KeptBody = {
  readonly path: string
  readonly endpoint: Destination
  readonly status: number
  readonly encoding: string | undefined
  readonly body: Uint8Array
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

export const startSender = (order: SendOrder, recorder: Recorder) => {
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
  let [lastSentAt, lastEndedAt, lastAnsweredAt, cutAt] = [0, 0, 0, 0]
  const endsAt = arrivals.endsAt ?? (isClosed ? Number.POSITIVE_INFINITY : 0)
  // In line for a connection, from `front` on; in a closed loop, those that met a limit of this machine.
  let waiting: number[] = []
  let front = 0
  /** The first in line leaves it. What a stalled target leaves waiting may be millions, so they don't move up each time. */
  const leaveLine = (): void => {
    front += 1
    if (front < 10_000 || front * 2 < waiting.length) return
    waiting = waiting.slice(front)
    front = 0
  }
  const isInLine = (): boolean => front < waiting.length

  const events: LaneEvents<Sent> = {
    onAnswer: (job, answer) => {
      load.worked()
      const endedAt = now()
      lastEndedAt = endedAt
      const { form, request, dueAt, sentAt } = job
      if (dueAt >= pace.warmUpMs) lastAnsweredAt = endedAt
      const { status, head, bytes } = answer
      if (form.conditional && head.etag !== undefined) etags[form.representation] = head.etag
      const { endpoint } = form
      const { outcome, ageSeconds } = head
      recorder.record({ endpoint, outcome, status, request, dueAt, sentAt, endedAt, bytes, ageSeconds })
      load.ended(endedAt - dueAt)
      keep(form, answer)
      onFree()
    },
    onFailure: (job, reason) => {
      load.worked()
      if (isOwnLimit(reason)) {
        load.limited(reason)
        waiting.push(job.arrival)
      } else {
        const endedAt = now()
        lastEndedAt = endedAt
        const { request, dueAt, sentAt, form } = job
        recorder.fail(reason, { request, dueAt, sentAt, endedAt, endpoint: form.endpoint })
        load.ended(endedAt - dueAt)
        if (isClosed && !responding.has(reason)) pausedUntil = endedAt + reconnectMs
      }
      onFree()
    },
  }
  let pausedUntil = 0
  const onFree = (): void => {
    if (isClosed) fill()
    else sendWaiting()
    if (isStopped) endIfDone()
  }
  const lanes =
    order.http === '2'
      ? http2Lanes<Sent>(target, connections, events)
      : http1Lanes<Sent>(target, connections, events)

  const wantsBody = (form: RequestForm): boolean =>
    kept.length < order.keepBodies &&
    keptBytes < maxKeptBytes &&
    form.method === 'GET' &&
    !keptNames.has(form.path)

  const keep = ({ path, endpoint }: RequestForm, { status, head, body }: Answer): void => {
    if (!body || status === 304) return
    // The first answer with weather in it; an error may come before it.
    const name = status === 200 ? path : `${status} ${path}`
    if (keptNames.has(name)) return
    keptNames.add(name)
    keptBytes += body.length
    kept.push({ path, endpoint, status, encoding: head.encoding, body })
  }

  const formOf = (request: number): RequestForm =>
    schedule.forms[schedule.form[request] as number] as RequestForm

  const send = (lane: (job: Sent) => void, number: number, dueAt: number): void => {
    const request = arrivals.request(number)
    const form = formOf(request)
    const key = keys[schedule.key[request] as number]
    const etag = form.conditional ? etags[form.representation] : undefined
    const sentAt = now()
    lastSentAt = sentAt
    lane({
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

  const sendWaiting = (): void => {
    while (isInLine()) {
      const number = waiting[front] as number
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
      leaveLine()
    }
  }

  const fill = (): void => {
    for (;;) {
      const at = now()
      if (at < pausedUntil && !isCut) return
      const again = waiting[front]
      const isLate = isCut || at >= (pace.durationMs ?? Number.POSITIVE_INFINITY)
      if (isLate || (again === undefined && arrivals.due(arrival) === Number.POSITIVE_INFINITY)) {
        front = waiting.length
        stop()
        return
      }
      const lane = lanes.take()
      if (!lane) return
      send(lane, again ?? arrival, at)
      if (again === undefined) arrival += share.of
      else leaveLine()
    }
  }

  const pump = (): void => {
    if (isOver) return
    load.turned()
    const at = now()
    let dueAt = arrivals.due(arrival)
    while (dueAt <= at && !isStopped) {
      if (dueAt >= pace.warmUpMs) load.due(now() - dueAt)
      const lane = isInLine() ? undefined : lanes.take()
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
    if (isOver || lanes.busy.size > 0 || isInLine()) return
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
    for (const [job, end] of lanes.busy) {
      if (at >= giveUpAt) end('unanswered')
      else if (at - job.sentAt > timeoutMs) end('timeout')
      else break
    }
    onFree()
  }, sweepEveryMs)

  const warmedUp = pace.warmUpMs > 0 ? setTimeout(load.begin, Math.max(0, pace.warmUpMs - now())) : undefined

  const wait = -now()
  const start = isClosed ? fill : pump
  if (wait > spinMs) setTimeout(start, wait - spinMs)
  else setImmediate(start)

  return {
    ended,
    stop: (): void => {
      isCut = true
      cutAt = now()
      giveUpAt = cutAt + graceMs
      isStopped = true
      onFree()
    },
    load,
    kept: kept as readonly KeptBody[],
    /** How long it sent, in ms: until the last was due or sent, in a closed loop until the last ended or time was up. */
    sentFor: (): number => {
      if (isCut) return Math.max(lastSentAt, cutAt)
      // The time in which a target that stands still kept all from being sent is part of the run.
      return Math.max(lastSentAt, isClosed ? Math.min(lastEndedAt, endsAt) : endsAt)
    },
    /** When the last response came that is counted, in ms; 0 without one. */
    answeredFor: (): number => lastAnsweredAt,
  }
}
