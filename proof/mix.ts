// The load of a schedule: requests of the usual mix over places, points, endpoints, languages, codings, keys and gateways. Pure.
// A few requests are wrong on purpose, because an answer to them is promised too.

import type { Random } from './random.ts'
import type { PlannedRequest } from './steps.ts'

/** Places of the whole catalogue, each in its own cell; the checker reads their coordinates from the answers. */
const places = ['district/3026', 'district/2015', 'division/30', 'district/1004'] as const
/** The place that has another name after a change of the catalogue. */
export const renamedPlace = '3026'
export const points = ['23.7/90.4', '22.3/91.8', '24.9/91.87', '21.43/91.98', '25.74/89.25'] as const

const wrong = [
  '/weather/district/999999',
  '/weather/planet/30',
  '/weather/coords/51.5/0.1',
  '/forecast/district/3026?days=9',
  '/locations?type=village',
  '/nothing',
] as const

const issuedKeys = ['plenty', 'plenty', 'many', 'many', 'some', 'some', 'some', 'few', 'few'] as const

/** Places and points, now and then one of them twice. */
const listOf = (random: Random): string => {
  const some = Array.from({ length: random.between(1, 5) }, () => random.pick(places))
  if (random.chance(0.3)) return `/forecast?places=${some}&days=3`
  const near = Array.from({ length: random.between(0, 4) }, () => `coords/${random.pick(points)}`)
  return `/weather?places=${[...some, ...near]}&lang=en`
}

const pathOf = (random: Random): string => {
  const kind = random.fraction()
  const language = random.pick(['', '?lang=en', '?lang=bn'])
  if (kind < 0.4) return `/weather/${random.pick(places)}${language}`
  if (kind < 0.65) return `/weather/coords/${random.pick(points)}${language}`
  if (kind < 0.83) return `/forecast/${random.pick(places)}${random.pick(['', '?days=1', '?days=3'])}`
  if (kind < 0.88)
    return `/locations?type=${random.pick(['division', 'district'])}&limit=3${random.pick(['', '&offset=2'])}`
  if (kind < 0.92) return `/locations/${random.pick(places)}`
  if (kind < 0.97) return listOf(random)
  return random.pick(wrong)
}

/**
 * @param more names of keys beside the usual ones
 * @param only the key of most of them; without it often one dominates, so that one runs out
 */
export const requestsOf = (
  random: Random,
  count: number,
  gateways: number,
  more: readonly string[],
  only?: string,
): PlannedRequest[] => {
  const favourite = only ?? (random.chance(0.4) ? random.pick([...issuedKeys, ...more]) : undefined)
  return Array.from({ length: count }, () => {
    const key = favourite && random.chance(0.7) ? favourite : random.pick([...issuedKeys, ...more, ...more])
    const coding = random.fraction()
    return {
      gateway: random.between(0, gateways - 1),
      key: random.chance(0.02) ? 'nobody' : key,
      path: pathOf(random),
      ...(coding < 0.4 && { encoding: 'gzip' as const }),
      ...(coding > 0.9 && { encoding: 'br' as const }),
      ...(random.chance(0.2) && { revalidate: true as const }),
      ...(random.chance(0.04) && { method: random.pick(['HEAD', 'HEAD', 'POST'] as const) }),
      ...(key !== 'nobody' &&
        !issuedKeys.includes(key as never) &&
        random.chance(0.4) && { former: true as const }),
    }
  })
}

/** One request for each cell, with the key that has enough: what the end of a history asks each gateway for. */
export const finalPaths: readonly string[] = [
  ...places.map(place => `/weather/${place}`),
  ...points.map(point => `/weather/coords/${point}`),
  `/forecast/${places[0]}`,
]
