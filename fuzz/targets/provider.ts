// Target: the responses of the provider. A valid body is damaged in structure, values, text, compression or size. The
// gateway must serve correct or plausible weather of that very cell, or an error that says so. It must serve other clients
// meanwhile.

import fc, { type Arbitrary } from 'fast-check'
import { metric } from '../../test/scenarios/set-up.ts'
import { foundWithin, until } from '../../test/support/until.ts'
import { cut, demand, demandInTime, Fault } from '../fault.ts'
import { checkAnswer, isLate, jsonOf } from '../http/answer-rules.ts'
import { get, patienceMs } from '../http/conversation.ts'
import type { Answer } from '../http/response-reader.ts'
import { degreesFrom, hasSameWeather, isAsRight, isInPlace } from '../oracle/provider-body.ts'
import { checkWeather, type Interval, type WeatherBody } from '../oracle/weather-body.ts'
import { answeredWithinMs, goodTarget } from '../system/health.ts'
import type { System } from '../system/system.ts'
import { batchesOf, type Target, upTo, weighted } from '../target.ts'
import {
  type Bomb,
  bombs,
  bombText,
  type Change,
  changed,
  changeKinds,
  changesOf,
  changeText,
} from './body-changes.ts'
import { badWires, isIntact, rightWires, sent, type Wire } from './body-wire.ts'
import { cellDegrees, cellName, freshCells, type Point } from './fresh-cells.ts'
import { type Call, type HostileProvider, isSame, startHostileProvider } from './hostile-provider.ts'

/** Wider than a grid cell of the provider's models. */
const anotherPlaceDegrees = 1
const rightAgainEvery = 20

type ProviderCase = {
  /** How many cells are requested at once. */
  readonly cells: number
  readonly changes: readonly Change[]
  readonly bomb: Bomb | undefined
  readonly wire: Wire
}
const caseOf = (least: number, most: number, wire: Arbitrary<Wire>): Arbitrary<ProviderCase> =>
  fc.record({
    cells: weighted([3, fc.constant(1)], [1, upTo(2, 6)]),
    changes: fc.array(changesOf(...changeKinds), { minLength: least, maxLength: most }),
    bomb: fc.constant(undefined),
    wire,
  })
const cases = weighted(
  [14, caseOf(1, 1, rightWires)],
  [6, caseOf(0, 3, rightWires)],
  [6, caseOf(0, 0, badWires)],
)
const plainly = fc.constantFrom('plain', 'zipped').map(kind => ({ kind, at: 0, status: 200 }))
const bombCases = fc
  .tuple(bombs, plainly)
  .map(([bomb, wire]): ProviderCase => ({ cells: 1, changes: [], bomb, wire }))

/** The weather of cells, requested on one connection. @throws Fault when an answer is missing */
const loadCells = ({ gateway, key }: System, points: readonly Point[]): Promise<Answer[]> => {
  const paths = points.map(({ latitude, longitude }) => `/api/v1/weather/coords/${latitude}/${longitude}`)
  return get(gateway().apiUrl, key, paths)
}

/** The name of any cell's bytes in Redis, found by loading one: nothing here depends on how the gateway builds names. */
const nameOfBytes = async (system: System): Promise<(point: Point) => string> => {
  const [point] = freshCells(system, 1) as [Point]
  // It is written behind the answer, and a busy machine may be late for the first.
  return until('the entry of a cell is in Redis', async () => {
    await loadCells(system, [point])
    for (const name of await system.redis.keys(`*${cellName(point)}*`))
      if ((await system.redis.type(name)) === 'string')
        return (other: Point) => name.replace(cellName(point), cellName(other))
    return undefined
  })
}

/** Sends good requests again and again until stopped; the returned function stops it. @throws Fault for a long wait */
const watchOthers = ({ gateway, key }: System): (() => Promise<void>) => {
  let [longestMs, isOver] = [0, false]
  const watching = (async () => {
    while (!isOver) {
      const worked = gateway().stopwatch()
      const isAnswered = await get(gateway().apiUrl, key, [goodTarget]).then(
        () => true,
        () => false,
      )
      isOver ||= !isAnswered
      longestMs = Math.max(longestMs, isAnswered ? worked() : patienceMs)
    }
  })()
  return async () => {
    isOver = true
    await watching
    demandInTime(longestMs <= answeredWithinMs, 'others wait', `${Math.round(longestMs)} ms`)
  }
}

/** Several cells share one provider request: a request before them is delayed until all of them wait. */
const loadTogether = async (
  system: System,
  hostile: HostileProvider,
  points: readonly Point[],
): Promise<Answer[]> => {
  if (points.length === 1) return loadCells(system, points)
  const [first] = freshCells(system, 1) as [Point]
  const { promise: allWait, resolve } = Promise.withResolvers<void>()
  const arrived = hostile.hold(first, allWait)
  const before = loadCells(system, [first])
  try {
    await Promise.race([arrived, before])
    const all = loadCells(system, points)
    // What ends the first may end these, before they are awaited.
    all.catch(() => {})
    // By the gateway's metric, for a while.
    const waiting = () => metric(system.gateway().opsUrl, 'abohawa_provider_waiting_cells')
    await foundWithin(400, async () => (await waiting()) === points.length, 0)
    resolve()
    await before
    return await all
  } finally {
    resolve()
  }
}

const check = (answer: Answer, point: Point, call: Call | undefined, when: Interval): void => {
  checkAnswer(answer)
  const at = call?.points.findIndex(one => isSame(one, point)) ?? -1
  const elements = call?.text === undefined ? [] : elementsOf(call.text)
  const element = elements.length === call?.points.length ? elements[at] : undefined
  if (answer.status !== 200) {
    const error = String(jsonOf(answer)?.error)
    demand(answer.status === 500, 'another status than 500 for a body that is refused', answer.status)
    demand(!error.includes('unexpected'), 'an error that nobody foresaw', error)
    // A valid element is served if the others are in their places, so that their wrong values do not affect it.
    const mustBeServed = elements.every((one, i) => {
      const right = call?.right[i]
      return right !== undefined && (isAsRight(one, right) || (i !== at && isInPlace(one, right)))
    })
    if (element !== undefined && mustBeServed)
      throw new Fault('a right body is refused', error, isLate(answer))
    return
  }
  const body = (jsonOf(answer) ?? {}) as WeatherBody
  checkWeather(body, when)
  const right = call?.right[at]
  demand(right, 'weather that the provider was not asked for', cellName(point))
  const apart = degreesFrom(point.latitude, point.longitude, element) ?? 0
  demand(
    apart <= anotherPlaceDegrees,
    "another cell's weather",
    `of a point ${apart.toFixed(1)} degrees away`,
  )
  const isSaid = hasSameWeather(body, right) || hasSameWeather(body, element)
  demand(isSaid, 'weather that no body says', cellName(point))
}

const elementsOf = (text: string): unknown[] => {
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) ? parsed : [parsed]
  } catch {
    return []
  }
}

export const provider: Target<ProviderCase> = {
  name: 'provider',
  share: 6,
  checks: 'correct weather or a refusal, physical ranges, others served, bounded memory, recovery',
  batches: batchesOf<ProviderCase>(cases, 40, { of: bombCases, every: 2 }),
  atOnce: 1,
  setting: {
    standIn: startHostileProvider,
    env: {
      ABOHAWA_CACHE__CELL_DEGREES: String(cellDegrees),
      ABOHAWA_TEST_CACHE__WAIT_FOR: '4s',
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_PROVIDER__TIMEOUT: '2s',
      ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: '2s',
      ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '3s',
      ABOHAWA_TEST_PROVIDER__REFUSED_FOR: '1s',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '100ms',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '100ms',
    },
  },
  kindOf: ({ bomb, changes, wire }) => bomb?.kind ?? changes[0]?.kind ?? `${wire.kind} on the wire`,
  print: ({ cells, changes, bomb, wire }) => {
    const what = bomb ? `${bomb.kind}, ${bomb.megabytes} MiB` : changes.map(changeText).join('; ') || 'right'
    return `${cells} cells; ${cut(what, 400)}; ${wire.kind}, ${wire.status}`
  },
  open: async system => {
    const hostile = system.standIn as HostileProvider
    const storedAs = await nameOfBytes(system)
    let sinceRight = 0
    return {
      run: async ({ cells, changes, bomb, wire }) => {
        const points = freshCells(system, cells)
        const stop = bomb && watchOthers(system)
        hostile.takeCalls()
        hostile.spoilWith({
          spoils: point => points.some(one => isSame(one, point)),
          spoil: right => {
            const text = bomb ? bombText(bomb, right) : changed(right, changes)
            return { text: isIntact(wire) && !bomb ? text : undefined, pieces: sent(Buffer.from(text), wire) }
          },
        })
        const begun = Date.now()
        const loading = loadTogether(system, hostile, points).finally(() => hostile.spoilWith(null))
        const answers = await loading.catch(async error => {
          await stop?.().catch(() => {})
          throw error
        })
        const when: Interval = [begun, Date.now()]
        await stop?.()
        const calls = hostile.takeCalls()
        for (const [i, point] of points.entries()) {
          const answer = answers[i] as Answer
          const call = calls.findLast(({ points: all }) => all.some(one => isSame(one, point)))
          check(answer, point, call, when)
          const isStored = answer.status !== 200 && (await system.redis.exists(storedAs(point))) === 1
          demand(!isStored, 'a refused body is stored all the same', cellName(point))
        }
        // A valid body now and then keeps the circuit breaker closed, and its weather is served.
        if (++sinceRight < rightAgainEvery) return
        sinceRight = 0
        const [answer] = await loadCells(system, freshCells(system, 1))
        if (answer?.status !== 200)
          throw new Fault(
            'right weather is refused after spoiled bodies',
            answer?.body,
            answer && isLate(answer),
          )
      },
    }
  },
}
