// A rehearsal: sends traffic to a gateway whose clock is moved from one arrival to the next, with its provider's. The clock stands still
// while a response is pending, unless requests wait for a later instant, such as the end of a budget window.

import { setTimeout as pause } from 'node:timers/promises'
import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { type Dispatcher, Pool } from 'undici'
import { generatorErrorOf } from '../replay/generator-errors.ts'
import type { Recorder } from '../replay/recorder.ts'
import { cacheFactsIn } from '../replay/response-head.ts'
import type { ProviderWeight } from '../report/provider-weight.ts'
import { endpointOf } from '../traffic/endpoint-of-path.ts'
import { sentWithOf } from '../traffic/recorded-admission.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'
import type { Fixture } from './fixture.ts'

export type RehearsalOptions = {
  /** In order of arrival. */
  readonly requests: readonly TrafficRequest[]
  /** Requests within this time are sent together, at the instant of the first. */
  readonly stepMs: number
  readonly onProgress: (sent: number) => void
  readonly signal: AbortSignal
}

// The largest move without a due request: the provider's clock may be ahead of the gateway by as much.
const quietMs = 5_000
// While a request waits for a later instant.
const waitingMs = 500
// A response may be written but not read yet.
const answerWithinMs = 3
// By the machine's clock, without any progress.
const longestWaitMs = 60_000
// By the machine's clock; longer than the gateway's own deadlines.
const timeoutMs = 60_000

export const maxConnections = 256

/** Resolves to the instant of the last response, by the moved clock. */
export const rehearse = async (
  { requests, stepMs, onProgress, signal }: RehearsalOptions,
  { fixture, recorder, spending }: { fixture: Fixture; recorder: Recorder; spending: ProviderWeight },
): Promise<number> => {
  const start = requests[0]?.at ?? 0
  const begunAt = performance.now()
  const pool = new Pool(fixture.apiUrl, {
    connections: maxConnections,
    pipelining: 1,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveTimeout: 600_000,
    allowH2: false,
  })
  // ETags for conditional requests, by path and encoding.
  const tags = new Map<string, string>()
  const unanswered = new Set<Promise<void>>()
  let now = start
  let answeredAt = start
  /** Whether a load may be running behind a response. */
  let mayLoad = false
  let limit: string | undefined

  const moveTo = async (instant: number): Promise<void> => {
    if (mayLoad) await fixture.settle()
    mayLoad = false
    spending.record(now, await fixture.moveTo(instant))
    now = instant
  }

  let substitutes = 0
  const keyOf = (request: TrafficRequest): string | undefined => {
    const sentWith = sentWithOf(request)
    if (sentWith === 'nothing') return undefined
    if (sentWith === 'own key') return fixture.keys.get(request.key ?? '')
    return fixture.substitutes[substitutes++ % fixture.substitutes.length]
  }

  const answerTo = async (
    { method, path, accepts, conditional }: TrafficRequest,
    key: string | undefined,
  ) => {
    const representation = `${accepts ?? ''} ${path}`
    const tag = conditional ? tags.get(representation) : undefined
    const { statusCode, headers, body } = await pool.request({
      method: method as Dispatcher.HttpMethod,
      path,
      headers: {
        ...(key === undefined ? {} : { 'x-api-key': key }),
        ...(accepts === undefined ? {} : { 'accept-encoding': accepts }),
        ...(tag === undefined ? {} : { 'if-none-match': tag }),
      },
    })
    const { etag, outcome, ageSeconds } = cacheFactsIn(headers)
    if (etag !== undefined) tags.set(representation, etag)
    let bytes = 0
    for await (const chunk of body) bytes += (chunk as Buffer).length
    if (statusCode >= 500 || headers['cache-status']?.includes('; fwd=')) mayLoad = true
    return { status: statusCode, bytes, outcome, ageSeconds }
  }

  const send = async (request: TrafficRequest): Promise<void> => {
    const key = keyOf(request)
    const dueAt = performance.now() - begunAt
    const sent = { dueAt, sentAt: dueAt, at: now - start, endpoint: endpointOf(request.path) }
    try {
      const answer = await answerTo(request, key)
      const endedAt = performance.now() - begunAt
      recorder.record({ ...sent, ...answer, endedAt, movedEnd: now - start })
      answeredAt = now
    } catch (error) {
      mayLoad = true
      limit ??= generatorErrorOf(error)
      recorder.fail(reasonOf(error), { ...sent, endedAt: performance.now() - begunAt })
    }
  }

  /** Resolves when all requests are answered or wait for a later instant. */
  const answered = async (): Promise<void> => {
    const from = performance.now()
    for (let agreed = 0; unanswered.size > 0 && agreed < 2; ) {
      const before = unanswered.size
      await Promise.race([Promise.all(unanswered), pause(answerWithinMs)])
      if (unanswered.size === 0) return
      const waiting = await fixture.settle()
      agreed = waiting === unanswered.size && before === unanswered.size ? agreed + 1 : 0
      if (performance.now() - from > longestWaitMs) return
    }
  }

  try {
    let next = 0
    for (;;) {
      if (limit !== undefined) throw new InputError(limit)
      const request = requests[next]
      if ((!request && unanswered.size === 0) || signal.aborted) break
      const furthest = now + (unanswered.size > 0 ? waitingMs : quietMs)
      const due = request ? Math.max(request.at, now) : furthest
      if (due > furthest || !request) await moveTo(Math.min(due, furthest))
      else {
        if (due > now || next === 0) await moveTo(due)
        const end = due + stepMs
        do {
          const one = send(requests[next] as TrafficRequest).finally(() => unanswered.delete(one))
          unanswered.add(one)
          next += 1
        } while (next < requests.length && (requests[next] as TrafficRequest).at < end)
        onProgress(next)
      }
      await Promise.race([answered(), fixture.ended])
    }
    if (mayLoad) await fixture.settle()
    spending.record(now, await fixture.counts())
    return answeredAt
  } finally {
    await pool.destroy()
  }
}

const reasonOf = (error: unknown): string => {
  const code = (error as { code?: unknown }).code
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return 'timeout'
  if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET') return 'reset'
  return code === 'ECONNREFUSED' ? 'refused' : messageOf(error)
}
