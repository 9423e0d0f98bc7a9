// Target: the cache entries of a fleet in Redis. One gateway writes them, the target tampers with the bytes, and another
// gateway without a memory cache reads them. A damaged or foreign entry must count as absent, so the weather is correct.

import { isDeepStrictEqual } from 'node:util'
import { until } from '../../test/support/until.ts'
import { type Finding, finding } from '../finding.ts'
import { brokenRules, headerOf, jsonOf } from '../http/answer-rules.ts'
import type { Answer } from '../http/response-reader.ts'
import { brokenWeather, type Interval, type WeatherBody } from '../oracle/weather-body.ts'
import type { Random } from '../random.ts'
import { watchOthers } from '../system/others.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { loadCells, nameOfBytes } from './cell-weather.ts'
import {
  isBomb,
  type Layout,
  layoutOf,
  makesUpWeather,
  makeTampering,
  type Tampering,
  tampered,
  tamperingKinds,
} from './entry-mutations.ts'
import { cellDegrees, cellName, freshCellsOf, type Point } from './fresh-cells.ts'
import { otherTypes, setAs } from './redis-damage.ts'

type EntryCase = {
  readonly number: number
  readonly tampering: Tampering
  /** A Redis type that no entry has, in place of tampered bytes. */
  readonly type: (typeof otherTypes)[number] | undefined
}

/** A cell whose entry is in Redis, and its correct weather. */
type Cached = { readonly point: Point; readonly bytes: Buffer; readonly answer: WeatherBody }

const cellsAtOnce = 40
const storedWithinMs = 2_000
const keepMs = 3_600_000
/** The clock difference that a fleet tolerates. */
const clocksApartMs = 600_000

const generate = (random: Random, number: number): EntryCase => {
  const kind = tamperingKinds[number % tamperingKinds.length] ?? 'nothing'
  // A bomb costs as much as a hundred other cases.
  const isSpared = kind === 'a bomb' && number >= tamperingKinds.length && !random.chance(0.1)
  return {
    number,
    tampering: makeTampering(random, isSpared ? 'flipped bits' : kind),
    type: random.chance(0.03) ? random.pick(otherTypes) : undefined,
  }
}

const open = async (system: System): Promise<Session<EntryCase>> => {
  const cells = freshCellsOf(system)
  const [{ key }] = system.keys
  const writer = await system.startAnother()
  const redis = system.redis()

  const [first] = cells.of(-1, 1) as [Point]
  await loadCells(writer, key, [first])
  const nameOf = await nameOfBytes(redis, first)
  if (!nameOf) throw new Error('the entry of a cell was not found in Redis')

  /** Cells that the writing gateway has loaded and whose bytes are in Redis. */
  const cached = async (points: readonly Point[]): Promise<Cached[]> => {
    const { answers } = await loadCells(writer, key, points)
    return Promise.all(
      points.map(async (point, i) => ({
        point,
        bytes: await stored(nameOf(point)),
        answer: weatherOf(answers[i]),
      })),
    )
  }
  const stored = (name: string): Promise<Buffer> =>
    until(`${name} is stored`, () => redis.getBuffer(name), storedWithinMs, 0)

  const [sample] = (await cached([first])) as [Cached]
  const layout: Layout = layoutOf(sample.bytes, [
    cellName(first),
    nameOf(first),
    nameOf(first).replace(/^fuzz:bytes:/, ''),
    nameOf(first).replace(/^[^{]*\{|\}[^}]*$/g, ''),
  ])

  // Neighbouring cases load their cells together, and twice as many as they need, so that entries can be swapped.
  const blocks = new Map<number, Promise<Cached[]>>()
  const cellsOf = async (number: number): Promise<[Cached, Cached]> => {
    const block = Math.floor(number / cellsAtOnce)
    const points = () =>
      Array.from({ length: cellsAtOnce }, (_, i) => cells.of(block * cellsAtOnce + i, 1)[0] as Point)
    let loaded = blocks.get(block)
    if (!loaded) {
      loaded = cached(points())
      blocks.clear()
      blocks.set(block, loaded)
    }
    const all = await loaded
    const at = number % cellsAtOnce
    const [own, other] = [all[at], all[(at + 1) % cellsAtOnce]]
    if (own && other && !usedUp.has(cellName(own.point))) {
      usedUp.add(cellName(own.point))
      return [own, other]
    }
    return (await cached([...cells.of(-1, 1), ...cells.of(-1, 1)])) as [Cached, Cached]
  }
  const usedUp = new Set<string>()

  return {
    notes: [
      ...(layout.repair
        ? []
        : ['entries: no checksum was found in the entries, so none was made right again']),
      ...(layout.bodyAt === undefined ? ['entries: no compressed part was found in the entries'] : []),
    ],
    run: async given => {
      const { number, tampering, type } = given
      const [own, other] = await cellsOf(number)
      const name = nameOf(own.point)
      const bytes = tampered(
        tampering,
        { bytes: own.bytes, other: other.bytes, layout, now: Date.now() },
        cellName(own.point),
      )
      const others = isBomb(tampering) ? watchOthers(system) : undefined
      if (type) await setAs(redis, name, type)
      else await redis.set(name, bytes, 'PX', keepMs)
      const sent = Date.now()
      const { answers, findings } = await loadCells(system.gateway(), key, [own.point])
      const [answer] = answers
      const waited = (await others?.()) ?? []
      if (!answer)
        return [...findings, ...waited, finding('a request without an answer', cellName(own.point))]
      const right = await rightNow(own, answer)
      return [
        ...findings,
        ...waited,
        ...brokenRules(answer),
        ...check(given, answer, right, [sent, Date.now()]),
      ]
    },
    close: async () => writer.kill(),
  }

  /** The writing gateway's weather for the same time; requested again when a quarter-hour has begun meanwhile. */
  async function rightNow(own: Cached, answer: Answer): Promise<WeatherBody> {
    if (weatherOf(answer).current?.time === own.answer.current?.time) return own.answer
    return weatherOf((await loadCells(writer, key, [own.point])).answers[0])
  }
}

function* smaller(given: EntryCase): Generator<EntryCase> {
  const { at } = given.tampering
  if (at.length > 1) yield { ...given, tampering: { ...given.tampering, at: at.slice(0, -1) } }
}

const weatherOf = (answer: Answer | undefined): WeatherBody => {
  const { current, hourly, daily, utc_offset_seconds } = ((answer && jsonOf(answer)) ?? {}) as WeatherBody
  return {
    ...(current && { current }),
    ...(hourly && { hourly }),
    ...(daily && { daily }),
    utc_offset_seconds,
  }
}

const check = (
  { tampering, type }: EntryCase,
  answer: Answer,
  right: WeatherBody,
  when: Interval,
): Finding[] => {
  if (answer.status !== 200)
    return [
      finding('no weather although the provider is well', `${answer.status}: ${answer.body.toString()}`),
    ]
  const served = weatherOf(answer)
  const found = brokenWeather(served, when)
  const fetchedAt = Date.parse(headerOf(answer, 'last-modified') ?? '')
  if (!(fetchedAt <= when[1] + clocksApartMs))
    found.push(finding('weather that was fetched in the future', String(headerOf(answer, 'last-modified'))))
  // An attacker who can recompute the checksum can invent plausible weather; nothing can detect that.
  const mayDiffer = type === undefined && tampering.repairs && makesUpWeather(tampering)
  if (!mayDiffer && !isDeepStrictEqual(served, right))
    found.push(finding('weather that is not the original', JSON.stringify(served.current)))
  return found
}

export const entries: Target<EntryCase> = {
  name: 'entries',
  share: 3,
  checks:
    'a tampered entry counts as absent: the weather is the original, or with a forged checksum at least possible; others answered meanwhile',
  batch: 80,
  atOnce: 4,
  setting: { env: { ABOHAWA_CACHE__CELL_DEGREES: String(cellDegrees) } },
  generate,
  shapeOf: ({ tampering, type }) =>
    type ? `a ${type}` : `${tampering.kind}${tampering.repairs ? ', checksum right' : ''}`,
  isAlone: ({ tampering }) => isBomb(tampering),
  smaller,
  print: ({ tampering, type }) =>
    type
      ? `a ${type} in place of an entry`
      : `${tampering.kind} at ${tampering.at.map(share => share.toFixed(4)).join(' ')}, checksum ${tampering.repairs ? 'made right again' : 'as it was'}`,
  open,
}
