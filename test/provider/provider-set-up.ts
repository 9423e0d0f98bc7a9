// Test helper: the parts of a provider on a manual clock, with budgets that grant what a test says, and what was requested.

import type { Test } from 'tap'
import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import { type BreakerOptions, createBreaker } from '../../src/provider/breaker.ts'
import type { Claim, Reservation } from '../../src/provider/charge.ts'
import { Provider, type ProviderOptions, type ProviderParts } from '../../src/provider/client.ts'
import type { ProviderError } from '../../src/provider/errors.ts'
import { createOpenMeteo } from '../../src/provider/open-meteo/protocol.ts'
import type { ProviderProtocol } from '../../src/provider/protocol.ts'
import { createProviderCall, type ProviderCallOptions } from '../../src/provider/provider-call.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { horizonFor } from '../../src/weather/horizon.ts'
import { layOut, type Timeline } from '../../src/weather/timeline.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { patienceMs } from '../support/until.ts'

/** The default protocol of a gateway. */
export const openMeteo = createOpenMeteo({
  horizon: horizonFor(13 * hourMs, 48),
  calendar: createCalendar('Asia/Dhaka'),
})

/** Options of a provider call, with timeouts that no honest server on loopback exceeds, even on a busy machine. */
export const callOptions = (baseUrl: string) => ({
  baseUrl,
  apiKey: null,
  ...{ connectTimeoutMs: patienceMs, timeoutMs: patienceMs, bodyTimeoutMs: patienceMs },
  totalTimeoutMs: patienceMs,
  maxConcurrent: 1,
})

type Budget = ProviderParts['budget']

const grid = createGrid(0.1)
/** Cells of one row, from west to east. */
export const cellsFrom = (latitude: number, count: number): Cell[] =>
  Array.from({ length: count }, (_, i) => grid.cellOf(latitude, 88 + i / 10))

/** A reservation that grants so many points, and costs nothing. */
export const granted = (points: number, given: Partial<Reservation> = {}): Reservation => ({
  points,
  claims: [],
  retryAt: null,
  isValid: () => true,
  limited: async () => {},
  settle: async () => {},
  ...given,
})

/** A budget that grants each consumer what `pointsFor` says, and holds it back until an instant for the rest. */
export const budgetFor = (pointsFor: (claim: Claim) => number, throttledUntil: () => number): Budget => ({
  reserve: async (points, _purpose, claims = []) =>
    granted(points, {
      claims: claims.map(claim => {
        const given = Math.min(claim.points, pointsFor(claim))
        return { points: given, throttledUntil: given < claim.points ? throttledUntil() : null }
      }),
    }),
})

export const anyTimeline = layOut(
  0,
  { start: 0, length: 1 },
  { start: 0, length: 1 },
  { start: 0, length: 1 },
)

/** A protocol whose provider answers immediately, with what a test gives for each request. */
export const answering = (
  resultsOf: (cells: readonly Cell[]) => readonly (Timeline | ProviderError)[] = cells =>
    cells.map(() => anyTimeline),
): ProviderProtocol => ({
  ...openMeteo,
  requestFor: cells => ({ path: '/', maxBytes: 1, decode: async () => resultsOf(cells) }),
})

/** What a test sets of a provider; the budget always has room. */
type Given = {
  readonly options?: Partial<ProviderOptions>
  readonly network?: Partial<ProviderCallOptions>
  readonly guard?: Partial<BreakerOptions>
  readonly budget?: Budget
  readonly protocol?: ProviderProtocol
  readonly clock?: ManualClock
  readonly recentConsumers?: readonly string[]
}

export const providerAt = (t: Pick<Test, 'teardown'>, url: string, given: Given = {}) => {
  const { protocol = openMeteo, clock = manualClock(), recentConsumers = [] } = given
  const requests: [outcome: string, points: number][] = []
  const refused: string[] = []
  const loaded: string[] = []
  const call = createProviderCall({ ...callOptions(url), ...given.network }, { protocol, clock })
  const breaker = createBreaker(
    { after: 1_000, halfOpenAfterMs: 1_000, halfOpenAfterAtMostMs: 1_000, ...given.guard },
    clock,
    () => {},
  )
  const provider = new Provider(
    {
      ...{ maxConcurrent: 1, maxPointsPerRequest: 100, retries: 2, retryDelayMs: 1, queueForMs: 15_000 },
      ...given.options,
    },
    {
      call,
      protocol,
      breaker,
      budget: given.budget ?? { reserve: async points => granted(points) },
      recentConsumers: () => recentConsumers,
      clock,
      observer: {
        request: (outcome, points) => requests.push([outcome, points]),
        refused: why => refused.push(why),
        loaded: consumer => loaded.push(consumer),
        odd: () => {},
      },
    },
  )
  t.teardown(async () => {
    provider.close()
    await call.close()
  })
  return { provider, requests, refused, loaded, clock, call, breaker }
}

/** `ok`, or the code of the error, of each load. */
export const codesOf = async (loads: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(loads)).map(result => (result.status === 'fulfilled' ? 'ok' : result.reason.code))
