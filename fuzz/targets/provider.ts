// Target: the responses of the provider. A valid body is damaged in structure, values, text, compression or size. The
// gateway must serve correct or plausible weather of that very cell, or an error that says so. It must serve other clients
// meanwhile.

import { request } from 'undici'
import { foundWithin } from '../../test/support/until.ts'
import { cut, type Finding, finding, slowness } from '../finding.ts'
import { brokenRules, isLate, jsonOf } from '../http/answer-rules.ts'
import type { Answer } from '../http/response-reader.ts'
import { degreesFrom, hasSameWeather, isAsRight, isInPlace } from '../oracle/provider-body.ts'
import { brokenWeather, type Interval, type WeatherBody } from '../oracle/weather-body.ts'
import type { Random } from '../random.ts'
import { watchOthers } from '../system/others.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { type Bomb, bombKinds, bombText, makeBomb } from './body-bombs.ts'
import { type Change, changed, changeKinds, changeText, makeChange } from './body-mutations.ts'
import { makeWire, rightWires, type Wire, wireKinds } from './body-wire.ts'
import { loadCells, nameOfBytes } from './cell-weather.ts'
import { cellDegrees, cellName, type FreshCells, freshCellsOf, type Point } from './fresh-cells.ts'
import { type Call, type HostileProvider, startHostileProvider } from './hostile-provider.ts'

type ProviderCase = {
  readonly number: number
  /** How many cells are requested at once. */
  readonly cells: number
  readonly changes: readonly Change[]
  readonly bomb: Bomb | undefined
  readonly wire: Wire
}

// As expensive as some hundred other cases.
const bombEvery = 20
/** Wider than a grid cell of the provider's models. */
const anotherPlaceDegrees = 1

const generate = (random: Random, number: number): ProviderCase => {
  const cells = random.chance(0.75) ? 1 : random.between(2, 6)
  const isBomb = number % bombEvery === bombEvery - 1
  // Every bomb, mutation and transfer in turn, and further ones at random.
  const turn = Math.floor(number / bombEvery)
  const bomb = isBomb ? makeBomb(random, bombKinds[turn % bombKinds.length] ?? 'blanks') : undefined
  const damagesWire = !isBomb && random.chance(0.25)
  const first = changeKinds[number % changeKinds.length] ?? 'cut off'
  const more = random.chance(0.3) ? [random.pick(changeKinds), random.pick(changeKinds)] : []
  const kinds = random.chance(0.05) || damagesWire || isBomb ? [] : [first, ...more]
  return {
    number,
    cells: isBomb ? 1 : cells,
    changes: kinds.map(kind => makeChange(random, kind)),
    bomb,
    wire: makeWire(
      random,
      damagesWire ? random.pick(wireKinds) : random.pick(isBomb ? ['plain', 'zipped'] : rightWires),
    ),
  }
}

const open = async (system: System): Promise<Session<ProviderCase>> => {
  const hostile = system.standIn as HostileProvider
  const cellsFor = freshCellsOf(system)
  const [known] = cellsFor.of(-1, 1) as [Point]
  await loadCells(system.gateway(), system.keys[0].key, [known])
  const storedAs = await nameOfBytes(system.redis(), known)
  let sinceRight = 0

  const run = async (given: ProviderCase): Promise<Finding[]> => {
    const points = cellsFor.of(given.number, given.cells)
    const health = given.bomb ? watchOthers(system) : undefined
    hostile.takeCalls()
    hostile.spoilWith({
      spoils: ({ latitude, longitude }) =>
        points.some(point => point.latitude === latitude && point.longitude === longitude),
      spoil: right => ({
        text: given.bomb ? bombText(given.bomb, right) : changed(right, given.changes),
        wire: given.wire,
        isBomb: given.bomb !== undefined,
      }),
    })
    const sentAt = Date.now()
    const { answers, findings } = await loadTogether(system, hostile, points, cellsFor)
    const when: Interval = [sentAt, Date.now()]
    const calls = hostile.takeCalls()
    hostile.spoilWith(null)
    const found = [...findings, ...((await health?.()) ?? [])]
    for (const [i, point] of points.entries()) {
      const answer = answers[i]
      if (!answer) continue
      const call = calls.findLast(({ points }) =>
        points.some(
          ({ latitude, longitude }) => latitude === point.latitude && longitude === point.longitude,
        ),
      )
      found.push(...brokenRules(answer), ...check(answer, point, call, when))
      if (answer.status !== 200 && storedAs && (await system.redis().exists(storedAs(point))) === 1)
        found.push(finding('a refused body is stored all the same', cellName(point)))
    }
    return [...found, ...(await checkRecovery(system))]
  }

  // A valid body now and then keeps the circuit breaker closed, and its weather is served.
  const checkRecovery = async (system: System): Promise<Finding[]> => {
    if (++sinceRight < 20) return []
    sinceRight = 0
    const { answers } = await loadCells(system.gateway(), system.keys[0].key, cellsFor.of(-1, 1))
    return answers[0]?.status === 200
      ? []
      : [finding('right weather is refused after spoiled bodies', answers[0]?.body.toString() ?? 'no answer')]
  }

  return { run, close: async () => {} }
}

function* smaller(given: ProviderCase): Generator<ProviderCase> {
  if (given.cells > 1) yield { ...given, cells: given.cells - 1 }
  for (let i = 0; i < given.changes.length; i++) yield { ...given, changes: given.changes.toSpliced(i, 1) }
  if (given.wire.kind !== 'plain') yield { ...given, wire: { ...given.wire, kind: 'plain' } }
  if (given.bomb && given.bomb.megabytes > 1)
    yield { ...given, bomb: { ...given.bomb, megabytes: Math.ceil(given.bomb.megabytes / 4) } }
}

/** Several cells share one provider request: a request before them is delayed until all of them wait. */
const loadTogether = async (
  system: System,
  hostile: HostileProvider,
  points: readonly Point[],
  cells: FreshCells,
) => {
  if (points.length === 1) return loadCells(system.gateway(), system.keys[0].key, points)
  const [first] = cells.of(-1, 1) as [Point]
  const { promise: until, resolve } = Promise.withResolvers<void>()
  const arrived = hostile.hold(first, until)
  const before = loadCells(system.gateway(), system.keys[0].key, [first])
  await Promise.race([arrived, before])
  const all = loadCells(system.gateway(), system.keys[0].key, points)
  await waiting(system, points.length)
  resolve()
  await before
  return all
}

const waitingWithinMs = 400
/** Waits until so many cells wait for the provider, by its metric, with a deadline. */
const waiting = async (system: System, count: number): Promise<void> => {
  await foundWithin(
    waitingWithinMs,
    async () => {
      const text = await (await request(`${system.gateway().opsUrl}/metrics`)).body.text()
      return text.includes(`\nabohawa_provider_waiting_cells ${count}\n`)
    },
    0,
  )
}

const check = (answer: Answer, point: Point, call: Call | undefined, when: Interval): Finding[] => {
  const at =
    call?.points.findIndex(
      ({ latitude, longitude }) => latitude === point.latitude && longitude === point.longitude,
    ) ?? -1
  const right = call?.right[at]
  const elements = call?.text === undefined ? undefined : elementsOf(call.text)
  const element = elements?.length === call?.points.length ? elements?.[at] : undefined
  if (answer.status !== 200)
    return judgeRefusal(answer, element !== undefined && mustBeServed(at, elements, call))
  const body = (jsonOf(answer) ?? {}) as WeatherBody
  const found = brokenWeather(body, when)
  if (!right) return found
  const apart = degreesFrom(point.latitude, point.longitude, element)
  if (apart !== undefined && apart > anotherPlaceDegrees)
    return [
      ...found,
      finding("another cell's weather", `the body is for a point ${apart.toFixed(1)} degrees away`),
    ]
  return hasSameWeather(body, right) || hasSameWeather(body, element)
    ? found
    : [...found, finding('weather that no body says', cellName(point))]
}

/** True for a valid element if the other elements are in their places, so that their wrong values do not affect it. */
const mustBeServed = (at: number, elements: readonly unknown[] = [], call: Call | undefined): boolean =>
  elements.every((element, i) => {
    const right = call?.right[i]
    return right !== undefined && (isAsRight(element, right) || (i !== at && isInPlace(element, right)))
  })

const judgeRefusal = (answer: Answer, wasRight: boolean): Finding[] => {
  const { error } = jsonOf(answer) ?? {}
  if (answer.status !== 500)
    return [finding('another status than 500 for a body that is refused', String(answer.status))]
  if (/unexpected/.test(String(error))) return [finding('an error that nobody foresaw', String(error))]
  const because = isLate(answer) ? slowness : finding
  return wasRight ? [because('a right body is refused', String(error))] : []
}

const elementsOf = (text: string): unknown[] | undefined => {
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) ? parsed : [parsed]
  } catch {
    return undefined
  }
}

export const provider: Target<ProviderCase> = {
  name: 'provider',
  share: 6,
  checks:
    'what a right or plausible body says for that cell, or a refusal; physical ranges; others answered meanwhile; memory bounded; recovery',
  batch: 40,
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
  generate,
  shapeOf: ({ bomb, changes, wire }) => bomb?.kind ?? changes[0]?.kind ?? `${wire.kind} on the wire`,
  isAlone: ({ bomb }) => bomb !== undefined,
  smaller,
  print: ({ cells, changes, bomb, wire }) =>
    `${cells} cells; ${bomb ? `${bomb.kind}, ${bomb.megabytes} MiB` : cut(changes.map(changeText).join('; ') || 'right', 400)}; ${wire.kind}${wire.kind.includes('status') ? ` ${wire.status}` : ''}`,
  open,
}
