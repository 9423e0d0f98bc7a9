// The way of an operator's request to the provider: in turn with the gateway's own requests, over their connections, behind
// the circuit breaker, and paid from the budget at its full weight before it leaves. Which requests there are and what each
// weighs is the protocol's; who may send one is for the ops listener.

import pLimit from 'p-limit'
import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Breaker } from './breaker.ts'
import type { Budget, Reservation } from './budget.ts'
import type { Provider, ProviderObserver } from './client.ts'
import { OutOfBudgetError, ProviderError, type ProviderErrorCode } from './errors.ts'
import type { PassthroughProtocol, ProviderProtocol } from './protocol.ts'
import type { ProviderCall, WholeResponse } from './provider-call.ts'
import { outcomeOf } from './request-cost.ts'

type PassthroughRequest = {
  readonly method: 'GET' | 'HEAD'
  /** Path and query, appended to the provider's base URL. */
  readonly path: string
  /** Its weight at the provider, over all points; 0 where it counts nothing. */
  readonly weight: number
}

export type Passthrough = {
  readonly protocol: PassthroughProtocol
  /** Within which a request is to be answered, however long it waits for its turn. */
  totalTimeoutMs(): number
  /**
   * The provider's response, whatever its status, with a body of up to 16 MiB.
   * @param signal aborted when nobody waits for the response any more
   * @throws ProviderError: `provider_circuit_open` and OutOfBudgetError before anything is sent
   */
  send(request: PassthroughRequest, signal: AbortSignal): Promise<WholeResponse>
}

export type PassthroughParts = {
  readonly call: Pick<ProviderCall, 'response'>
  readonly inTurn: Provider['inTurn']
  readonly protocol: Pick<ProviderProtocol, 'passthrough' | 'refusalOf' | 'weightPerCell'>
  readonly breaker: Breaker
  readonly budget: Pick<Budget, 'reserve'>
  readonly clock: Clock
  readonly observer: Pick<ProviderObserver, 'request'>
}

// Held in memory, so that a slow reader does not hold one of the provider's few connections.
const maxBytes = 16 * 1024 * 1024
// The most bytes of an error body; its reason is one sentence.
const maxErrorBytes = 16 * 1024

// Failures that may be those of the question and say nothing of the provider's health.
const ofTheQuestion: ReadonlySet<ProviderErrorCode> = new Set(['provider_denied', 'provider_garbled'])

/** Passes the breaker without being counted. */
class Uncounted extends Error {
  override name = 'Uncounted'
}

export const createPassthrough = (
  totalTimeoutMs: Passthrough['totalTimeoutMs'],
  { call, inTurn, protocol, breaker, budget, clock, observer }: PassthroughParts,
): Passthrough => {
  // However many operators there are, one request of theirs at a time waits among those of the consumers.
  const oneAtATime = pLimit(1)

  /** @throws OutOfBudgetError when there is no room for all of it */
  const reserve = async (weight: number): Promise<Reservation> => {
    const points = pointsOf(weight, protocol.weightPerCell)
    const reservation = await budget.reserve(points, 'refresh')
    if (reservation.points >= points) return reservation
    await reservation.settle('unsent')
    throw new OutOfBudgetError(reservation.retryAt)
  }

  const counted = async (weight: number, request: () => Promise<void>): Promise<void> => {
    // A request without weight is for a file, whose outcome says nothing of other requests.
    if (weight === 0) return request()
    try {
      await breaker.run(async () => {
        try {
          await request()
        } catch (error) {
          throw error instanceof ProviderError && ofTheQuestion.has(error.code)
            ? new Uncounted(error.message, { cause: error })
            : error
        }
      })
    } catch (error) {
      throw error instanceof Uncounted ? error.cause : error
    }
  }

  const send = async (
    { method, path, weight }: PassthroughRequest,
    signal: AbortSignal,
  ): Promise<WholeResponse> => {
    signal.throwIfAborted()
    // Half-open too: the probe is one point of a cell.
    if (breaker.state().state !== 'closed') throw breaker.openError() ?? notClosed()
    const reservation = await reserve(weight)
    const started = performance.now()
    let outcome = 'ok'
    let response: WholeResponse | undefined
    let message: string | undefined
    try {
      await counted(weight, async () => {
        response = await call.response(
          { path, maxBytes },
          { method, accept: '*/*', isValid: reservation.isValid, signal },
        )
        const { status, body } = response
        if (status !== 200)
          throw protocol.refusalOf(status, body.toString('utf8', 0, maxErrorBytes), clock.now())
      })
      await reservation.settle('answered')
    } catch (error) {
      outcome = error instanceof ProviderError ? error.code : 'left'
      message = messageOf(error)
      await reservation.settle(outcomeOf(error))
      if (error instanceof ProviderError && error.code === 'provider_limited')
        await reservation.limited(error.retryAt ?? clock.now(), error.message)
      if (!response) throw error
    } finally {
      observer.request(outcome, 0, performance.now() - started, message)
    }
    return response as WholeResponse
  }

  return {
    protocol: protocol.passthrough,
    totalTimeoutMs,
    send: (request, signal) => oneAtATime(() => inTurn(() => send(request, signal))),
  }
}

const notClosed = (): ProviderError =>
  new ProviderError(
    'provider_circuit_open',
    'the provider has been failing, and the circuit is not closed yet',
  )

/** The whole points that a weight is, rounded up; at least 1 for what weighs anything. */
const pointsOf = (weight: number, weightPerPoint: number): number =>
  // A weight that is whole points may come out of the division a little above them.
  weight === 0 ? 0 : Math.max(1, Math.ceil(weight / weightPerPoint - 1e-9))
