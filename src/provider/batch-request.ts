// One request for the weather of a batch of cells: sends it, decodes the answer, settles what it cost, and notifies observers of
// the outcome. client.ts chooses the cells and the time.

import type { Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { BatchReservation } from './batch-reservation.ts'
import { ProviderError, type RefusedAnswer } from './errors.ts'
import type { ProviderProtocol } from './protocol.ts'
import type { ProviderCall } from './provider-call.ts'
import { requestOutcomeOf } from './request-cost.ts'

export type BatchObserver = {
  /**
   * Called for every request to the provider: its outcome (`ok` or a ProviderErrorCode), points and duration; what went
   * wrong if it brought no weather at all.
   */
  request(outcome: string, points: number, ms: number, reason?: string): void
  /** Called for every response, or element of one, that was refused. */
  refused(why: RefusedAnswer): void
}

type BatchRequestParts = {
  readonly call: Pick<ProviderCall, 'bytes'>
  readonly protocol: ProviderProtocol
  readonly clock: Clock
  readonly observer: BatchObserver
}

/** The timeline of each cell, or what is wrong with its element. @throws ProviderError when there is no good element */
export const createBatchRequest =
  ({ call, protocol, clock, observer }: BatchRequestParts) =>
  async (
    cells: readonly Cell[],
    reservation: BatchReservation,
  ): Promise<readonly (Timeline | ProviderError)[]> => {
    const started = performance.now()
    const requestedAt = clock.now()
    let outcome = 'ok'
    let reason: string | undefined
    let faults: readonly ProviderError[] = []
    try {
      const body = call.bytes(protocol.requestFor(cells), reservation.isValid)
      const results = await protocol.decode(body, { cells, requestedAt, clock })
      void reservation.settle('answered')
      faults = results.filter(result => result instanceof ProviderError)
      outcome = faults[0]?.code ?? 'ok'
      // Without one good element the provider is at fault, not a point.
      if (faults[0] && faults.length === results.length) throw faults[0]
      return results
    } catch (error) {
      outcome = error instanceof ProviderError ? error.code : 'internal'
      reason = messageOf(error)
      if (error instanceof ProviderError && faults.length === 0) faults = [error]
      void reservation.settle(requestOutcomeOf(error))
      throw error
    } finally {
      for (const { refused } of faults) if (refused) observer.refused(refused)
      observer.request(outcome, cells.length, performance.now() - started, reason)
    }
  }
