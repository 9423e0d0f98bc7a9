// Passes an operator's request to the provider: in turn with the gateway's own requests, over their connections, with the circuit
// breaker, and charged to the budget at its full weight before it is sent.

import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import pLimit from 'p-limit'
import type { Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { BatchObserver } from './batch.ts'
import type { Breaker } from './breaker.ts'
import type { Budget } from './budget.ts'
import type { Reservation } from './charge.ts'
import type { Provider } from './client.ts'
import { OutOfBudgetError, ProviderError, type ProviderErrorCode, requestOutcomeOf } from './errors.ts'
import type { ProviderProtocol } from './protocol.ts'
import {
  errorTextOf,
  type ProviderCall,
  type StreamedRequest,
  type StreamedResponse,
  unzipped,
} from './provider-call.ts'

type PassthroughRequest = Omit<StreamedRequest, 'isValid'> & {
  /** Its weight at the provider, over all points; 0 where it counts nothing. */
  readonly weight: number
}

/** The provider's response, whatever its status. */
type PassthroughResponse = Omit<StreamedResponse, 'body'> & { readonly body: Readable }

export type Passthrough = ReturnType<typeof createPassthrough>

export type PassthroughParts = {
  readonly call: Pick<ProviderCall, 'stream'>
  readonly inTurn: Provider['inTurn']
  readonly protocol: Pick<ProviderProtocol, 'passthrough' | 'refusalOf' | 'weightPerCell'>
  readonly breaker: Breaker
  readonly budget: Pick<Budget, 'reserveWhole'>
  readonly clock: Clock
  readonly observer: Pick<BatchObserver, 'request'>
}

// The most bytes that are read of an error; its reason is one sentence.
const maxErrorBytes = 16 * 1024
// 304: what the caller has is what the provider would send.
const good: ReadonlySet<number> = new Set([200, 304])

// Failures that a wrong request may cause: they say nothing of the provider's health.
const requestCodes: ReadonlySet<ProviderErrorCode> = new Set(['provider_denied', 'provider_garbled'])

/** @param totalTimeoutMs within which a request must be answered, however long it waits for its turn */
export const createPassthrough = (
  totalTimeoutMs: () => number,
  { call, inTurn, protocol, breaker, budget, clock, observer }: PassthroughParts,
) => {
  // Among the requests of consumers waits only one of operators at a time.
  const oneAtATime = pLimit(1)

  /** @throws OutOfBudgetError when there is no room for all of it */
  const reserve = async (weight: number): Promise<Reservation> => {
    const points = pointsOf(weight, protocol.weightPerCell)
    // A part would be of no use, and for a moment others would find nothing left.
    const reservation = await budget.reserveWhole(points, 'refresh')
    if (reservation.points < points) throw new OutOfBudgetError(reservation.retryAt)
    return reservation
  }

  const counted = async (weight: number, request: () => Promise<void>): Promise<void> => {
    // A request without weight reads a file, whose outcome says nothing of other requests.
    if (weight === 0) return request()
    await breaker.run(async () => {
      try {
        await request()
      } catch (error) {
        if (error instanceof ProviderError && requestCodes.has(error.code)) error.opensCircuit = false
        throw error
      }
    })
  }

  /** Hands the response over when its head is there; resolves when its body has ended. */
  const forward = async (
    { weight, ...request }: PassthroughRequest,
    signal: AbortSignal,
    respond: (response: PassthroughResponse) => void,
  ): Promise<void> => {
    signal.throwIfAborted()
    // Half-open too: the probe is one point of a cell.
    if (breaker.state().state !== 'closed') throw breaker.openError() ?? notClosed()
    const reservation = await reserve(weight)
    const started = performance.now()
    let outcome = 'ok'
    let message: string | undefined
    let isSent = false
    let isAnswered = false
    const isValid = (): boolean => {
      isSent = reservation.isValid()
      return isSent
    }
    try {
      await counted(weight, async () => {
        const response = await call.stream({ ...request, isValid }, signal)
        isAnswered = true
        const { status, headers } = response
        const begin: Uint8Array[] = []
        const body = Readable.from(keepingBegin(response.body, begin), { objectMode: false })
        respond({ status, headers, body })
        await finished(body)
        if (good.has(status)) return
        const text = unzipped(Readable.from(begin), headers['content-encoding'], maxErrorBytes)
        throw protocol.refusalOf(status, await errorTextOf(text), clock.now())
      })
      await reservation.settle('answered')
    } catch (error) {
      // Overdue for a wait before it was sent, or for a slow reader: the provider has not failed.
      const isOurs = error === signal.reason && (!isSent || isAnswered)
      if (error instanceof ProviderError && !isOurs) outcome = error.code
      else outcome = signal.aborted ? 'left' : 'internal'
      message = messageOf(error)
      await reservation.settle(isSent ? requestOutcomeOf(error) : 'unsent')
      if (error instanceof ProviderError && error.code === 'provider_limited')
        await reservation.limited(error.retryAt ?? clock.now(), error.message)
      throw error
    } finally {
      observer.request(outcome, 0, performance.now() - started, message)
    }
  }

  return {
    protocol: protocol.passthrough,
    totalTimeoutMs,
    /**
     * The response's body streams, and the turn lasts until it has ended.
     * @param signal aborted when nobody waits for the response any more
     * @throws ProviderError: `provider_circuit_open` and OutOfBudgetError before anything is sent
     */
    send: (request: PassthroughRequest, signal: AbortSignal): Promise<PassthroughResponse> =>
      new Promise((resolve, reject) => {
        oneAtATime(() => inTurn(() => forward(request, signal, resolve))).catch(reject)
      }),
  }
}

/** The chunks as they come; `begin` gets enough of the first ones to read an error in. */
async function* keepingBegin(
  body: AsyncIterable<Uint8Array>,
  begin: Uint8Array[],
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of body) {
    if (bytes < maxErrorBytes) begin.push(chunk)
    bytes += chunk.length
    yield chunk
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
