// A rehearsal: the requests of a traffic file, sent by its own clock to a gateway whose clock and provider's clock are moved
// from one arrival to the next. Nothing moves while an answer is out, so that latency takes no time of the traffic; a request
// that waits for an instant, such as the end of a budget's window, gets it. What is measured goes to the recorder.

import { setTimeout as pause } from 'node:timers/promises'
import { InputError, messageOf } from '../../common/errors.ts'
import { ownLimitOf } from '../replay/own-limits.ts'
import type { Recorder } from '../replay/recorder.ts'
import type { Spending } from '../report/spending.ts'
import { endpointOf } from '../traffic/endpoint-of-path.ts'
import { sentWithOf } from '../traffic/recorded-admission.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'
import type { Fixture } from './fixture.ts'
import { type Answer, createSender } from './sender.ts'

export type RehearsalOptions = {
  /** In order of arrival. */
  readonly requests: readonly TrafficRequest[]
  /** Requests that arrive within so many ms are sent together, at the instant of the first. */
  readonly stepMs: number
  /** Called with the number of requests sent so far. */
  readonly onProgress: (sent: number) => void
  /** Ends it early. */
  readonly signal: AbortSignal
}

// The largest move where no request is due. By so much the provider may be ahead of what the gateway does in it.
const quietMs = 5_000
// While a request waits for a later instant.
const waitingMs = 500
// An answer that is written and not yet read is not one that waits for an instant.
const answerWithinMs = 3
// By the machine's clock, without any sign from the gateway.
const longestWaitMs = 60_000

/** Sends the requests; resolves when all are answered, or at the signal. */
export const rehearse = async (
  { requests, stepMs, onProgress, signal }: RehearsalOptions,
  { fixture, recorder, spending }: { fixture: Fixture; recorder: Recorder; spending: Spending },
): Promise<void> => {
  const start = requests[0]?.at ?? 0
  const begunAt = performance.now()
  const sender = createSender(fixture.apiUrl)
  const unanswered = new Set<Promise<void>>()
  let now = start
  /** Whether a load may go on behind an answer. */
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

  const send = async (request: TrafficRequest): Promise<void> => {
    const { path } = request
    const key = keyOf(request)
    const dueAt = performance.now() - begunAt
    const endpoint = endpointOf(path)
    const instants = { dueAt, sentAt: dueAt, at: now - start }
    let answer: Answer
    try {
      answer = await sender.send(request, key)
    } catch (error) {
      mayLoad = true
      limit ??= ownLimitOf(error)
      recorder.fail(reasonOf(error), { ...instants, endpoint, endedAt: performance.now() - begunAt })
      return
    }
    const { forwarded, ...facts } = answer
    if (forwarded || answer.status >= 500) mayLoad = true
    recorder.record({
      ...instants,
      ...facts,
      endpoint,
      endedAt: performance.now() - begunAt,
      movedEnd: now - start,
    })
  }

  /** Resolves when every answer is there, or when those that are not wait for a later instant. */
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
  } finally {
    await sender.close()
  }
}

const reasonOf = (error: unknown): string => {
  const code = (error as { code?: unknown }).code
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return 'timeout'
  if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET') return 'reset'
  return code === 'ECONNREFUSED' ? 'refused' : messageOf(error)
}
