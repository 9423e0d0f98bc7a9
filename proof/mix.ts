// The load of a schedule: requests of the usual mix over places, points, endpoints, languages, codings, keys and gateways. Pure.
// A few requests are wrong on purpose, because an answer to them is promised too.

import type { Random } from './random.ts'
import { type PlannedRequest, statusPath } from './steps.ts'

/** Places of the whole catalogue, each in its own cell; the checker reads their coordinates from the answers. */
const places = ['district/3026', 'district/2015', 'division/30', 'district/1004'] as const
/** The same by their slugs. */
const slugs = ['district/dhaka', 'district/chattogram', 'division/dhaka', 'district/barguna'] as const
export const points = ['23.7/90.4', '22.3/91.8', '24.9/91.87', '21.43/91.98', '25.74/89.25'] as const

const wrong = [
  '/weather/district/999999',
  '/weather/planet/30',
  '/weather/coords/51.5/0.1',
  '/forecast/district/3026?days=9',
  '/locations?type=village',
  '/nothing',
] as const

const lists = [
  ...['type=division', 'type=district', 'type=district&division_id=30', 'type=union&upazila_id=302672'],
  ...['type=district&q=pur', 'type=division&q=barisal', 'type=upazila&q=dhaka&district_id=3026'],
] as const

const issuedKeys = ['plenty', 'plenty', 'many', 'many', 'some', 'some', 'some', 'few', 'few'] as const

/** In the cell of the first of them. */
const finerPoint = '23.7104/90.4071'

const named = (random: Random): string => random.pick(random.chance(0.15) ? slugs : places)
const pointOf = (random: Random): string => (random.chance(0.15) ? finerPoint : random.pick(points))
const queryOf = (...parameters: readonly string[]): string => {
  const given = parameters.filter(each => each !== '')
  return given.length > 0 ? `?${given.join('&')}` : ''
}

/** Places and points, now and then one of them twice. */
const listOf = (random: Random): string => {
  const some = Array.from({ length: random.between(1, 5) }, () => named(random))
  if (random.chance(0.3)) return `/forecast?places=${some}&days=3`
  const near = Array.from({ length: random.between(0, 4) }, () => `coords/${pointOf(random)}`)
  return `/weather?places=${[...some, ...near]}&lang=en`
}

const pathOf = (random: Random): string => {
  const kind = random.fraction()
  const language = random.pick(['', 'lang=en', 'lang=bn'])
  const text = random.chance(0.15) ? 'include=text' : ''
  if (kind < 0.4) return `/weather/${named(random)}${queryOf(language, text)}`
  if (kind < 0.62) {
    const include = random.pick(['', '', '', text, 'include=place', 'include=place,text'])
    return `/weather/coords/${pointOf(random)}${queryOf(language, include)}`
  }
  if (kind < 0.8)
    return `/forecast/${named(random)}${queryOf(random.pick(['', 'days=1', 'days=3']), text, text && language)}`
  if (kind < 0.85) return `/locations?${random.pick(lists)}&limit=3${random.pick(['', '&offset=2'])}`
  if (kind < 0.89) return `/locations/${named(random)}`
  if (kind < 0.91) return '/key'
  if (kind < 0.92) return statusPath
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
      ...(random.chance(0.06) && { method: random.pick(['HEAD', 'HEAD', 'HEAD', 'POST'] as const) }),
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
