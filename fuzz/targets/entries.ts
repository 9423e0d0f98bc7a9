// Target: the cache entries of a fleet in Redis. One gateway writes them, the target tampers with the bytes, and another
// gateway without a memory cache reads them. A damaged or foreign entry must count as absent, so the weather is correct.

import { isDeepStrictEqual } from 'node:util'
import fc, { type Arbitrary } from 'fast-check'
import { until } from '../../test/support/until.ts'
import { demand } from '../fault.ts'
import { checkAnswer, jsonOf } from '../http/answer-rules.ts'
import { watchOthers } from '../http/conversation.ts'
import type { Answer } from '../http/response-reader.ts'
import { checkWeather, type WeatherBody } from '../oracle/weather-body.ts'
import { answeredWithinMs, goodTarget } from '../system/health.ts'
import { batchesOf, type Target, weighted } from '../target.ts'
import {
  bombTamperings,
  isBomb,
  layoutOf,
  makesUpWeather,
  type Tampering,
  tampered,
  tamperings,
} from './entry-changes.ts'
import { cellDegrees, cellName, freshCells, loadCells, nameOfBytes, type Point } from './fresh-cells.ts'
import { type OtherType, otherTypes, setAs } from './redis-damage.ts'

/** `type`: a Redis type that no entry has, in place of tampered bytes. */
type EntryCase = { readonly tampering: Tampering; readonly type: OtherType | undefined }
/** A cell whose entry is in Redis, and its correct weather. */
type Cached = { readonly point: Point; readonly bytes: Buffer; readonly weather: WeatherBody }

const cellsAtOnce = 40
const storedWithinMs = 2_000
const keepMs = 3_600_000
/** The clock difference that a fleet tolerates. */
const clocksApartMs = 600_000

const casesOf = (
  tampering: Arbitrary<Tampering>,
  ...types: (OtherType | undefined)[]
): Arbitrary<EntryCase> => fc.record({ tampering, type: fc.constantFrom(...types) })
const cases = weighted([97, casesOf(tamperings, undefined)], [3, casesOf(tamperings, ...otherTypes)])

const weatherOf = (answer: Answer): WeatherBody => {
  const { current, hourly, daily, utc_offset_seconds } = (jsonOf(answer) ?? {}) as WeatherBody
  return {
    ...(current && { current }),
    ...(hourly && { hourly }),
    ...(daily && { daily }),
    utc_offset_seconds,
  }
}

export const entries: Target<EntryCase> = {
  name: 'entries',
  share: 3,
  checks:
    'a tampered entry counts as absent: the weather is the original, or with a forged checksum at least possible; others answered meanwhile',
  batches: batchesOf(cases, 120, { of: casesOf(bombTamperings, undefined), every: 4 }),
  first: [{ tampering: { kind: 'a bomb', at: [0], repairs: true }, type: undefined }],
  atOnce: 4,
  setting: { env: { ABOHAWA_CACHE__CELL_DEGREES: String(cellDegrees) } },
  kindOf: ({ tampering, type }) =>
    type ? `a ${type}` : `${tampering.kind}${tampering.repairs ? ', checksum right' : ''}`,
  print: ({ tampering, type }) =>
    type
      ? `a ${type} in place of an entry`
      : `${tampering.kind} at ${tampering.at.map(place => place.toFixed(4)).join(' ')}, checksum ${tampering.repairs ? 'made right again' : 'as it was'}`,
  open: async system => {
    const [{ key }] = system.keys
    const writer = await system.startAnother()
    const redis = system.redis()
    const [first] = freshCells(system, 1) as [Point]
    await loadCells(writer, key, [first])
    const nameOf = await nameOfBytes(redis, first)
    const stored = (name: string): Promise<Buffer> =>
      until(`${name} is stored`, () => redis.getBuffer(name), storedWithinMs, 0)
    const layout = layoutOf(await stored(nameOf(first)), [
      cellName(first),
      nameOf(first),
      nameOf(first).replace(/^fuzz:bytes:/, ''),
      nameOf(first).replace(/^[^{]*\{|\}[^}]*$/g, ''),
    ])

    // Cells that the writing gateway has loaded and whose bytes are in Redis: many at a time, since cases run together.
    let ready: Promise<Cached[]> = Promise.resolve([])
    const load = async (): Promise<Cached[]> => {
      const points = freshCells(system, cellsAtOnce)
      const answers = await loadCells(writer, key, points)
      return Promise.all(
        points.map(async (point, i) => ({
          point,
          bytes: await stored(nameOf(point)),
          weather: weatherOf(answers[i] as Answer),
        })),
      )
    }
    /** One that no other case has, and any other one. */
    const take = async (): Promise<[Cached, Cached]> => {
      const seen = ready
      const cells = await seen
      const own = cells.length > 1 ? cells.pop() : undefined
      if (own) return [own, cells[0] as Cached]
      // All that wait load once.
      if (ready === seen) ready = load()
      return take()
    }

    return {
      notes: [
        ...(layout.repair
          ? []
          : ['entries: no checksum was found in the entries, so none was made right again']),
        ...(layout.bodyAt === undefined ? ['entries: no compressed part was found in the entries'] : []),
      ],
      run: async ({ tampering, type }) => {
        const [own, other] = await take()
        const name = nameOf(own.point)
        const parts = { bytes: own.bytes, other: other.bytes, layout, now: Date.now() }
        const { apiUrl } = system.gateway()
        const stop = isBomb(tampering) ? watchOthers(apiUrl, key, goodTarget, answeredWithinMs) : undefined
        if (type) await setAs(redis, name, type)
        else await redis.set(name, tampered(tampering, parts, cellName(own.point)), 'PX', keepMs)
        const sent = Date.now()
        const [answer] = (await loadCells(system.gateway(), key, [own.point])) as [Answer]
        const received = Date.now()
        await stop?.()
        checkAnswer(answer)
        demand(
          answer.status === 200,
          'no weather although the provider is well',
          `${answer.status}: ${answer.body}`,
        )
        const served = weatherOf(answer)
        checkWeather(served, [sent, received])
        const fetchedAt = answer.headers.get('last-modified') ?? ''
        const isFetched = Date.parse(fetchedAt) <= received + clocksApartMs
        demand(isFetched, 'weather that was fetched in the future', fetchedAt)
        // An attacker who can recompute the checksum can invent plausible weather; nothing can detect that.
        if (!type && tampering.repairs && makesUpWeather(tampering)) return
        // The writing gateway is asked again when a quarter-hour has begun meanwhile.
        const isSameTime = served.current?.time === own.weather.current?.time
        const right = isSameTime
          ? own.weather
          : weatherOf((await loadCells(writer, key, [own.point]))[0] as Answer)
        demand(
          isDeepStrictEqual(served, right),
          'weather that is not the original',
          JSON.stringify(served.current),
        )
      },
      close: () => writer.kill(),
    }
  },
}
