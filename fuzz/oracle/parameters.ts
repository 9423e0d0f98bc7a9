// The contract's response to a path and query: the statuses that are right, and what a 200 must show. Decides from the text
// of the target alone and shares no code with the gateway.

import { type Place, placeOf, placeTypes } from './places.ts'

/** `wanted`: the requested resource, where the response is 200. */
export type Decision = { readonly statuses: readonly number[]; readonly wanted?: Wanted }
type ListWanted = { type: string; parentId: string | undefined; q: string; limit: number; offset: number }
export type Wanted = Readonly<
  | { kind: 'weather'; place: Place; lang: string; hasWords: boolean }
  | { kind: 'point'; latitude: number; longitude: number; lang: string; hasWords: boolean; hasPlace: boolean }
  | { kind: 'forecast'; place: Place; days: number; hasWords: boolean }
  | { kind: 'detail'; place: Place }
  | ({ kind: 'list' } & ListWanted)
  | { kind: 'many'; items: readonly (Wanted | undefined)[]; days: number | undefined }
>

const bad: Decision = { statuses: [400] }
const absent: Decision = { statuses: [404] }
const isType = (text: string): boolean => (placeTypes as readonly string[]).includes(text)

/** A request by GET or HEAD with a good key. */
export const decide = (target: string): Decision => {
  const queryAt = target.indexOf('?')
  const path = queryAt === -1 ? target : target.slice(0, queryAt)
  const query = queryAt === -1 ? '' : target.slice(queryAt + 1)
  const segments = path.split('/').map(segment => decoded(segment))
  if (segments.some(segment => segment === undefined)) return bad
  const [root, api, version, ...rest] = segments as string[]
  if (path === '/' || path === '/docs/' || segments.join('/') === '/openapi.json') return { statuses: [308] }
  if (root !== '' || api !== 'api' || version !== 'v1') return absent
  return decideEndpoint(rest, query)
}

const decideEndpoint = (segments: readonly string[], query: string): Decision => {
  const [name, first = '', second = '', third = ''] = segments
  if (name === 'locations' && segments.length === 1) return decideList(query)
  if ((name === 'weather' || name === 'forecast') && segments.length === 1) return decideMany(name, query)
  if (segments.length < 3 || segments.slice(1).some(segment => segment === '')) return absent
  if (name === 'weather' && segments.length === 4 && first === 'coords')
    return decidePoint(second, third, query)
  if (segments.length !== 3) return absent
  if (name === 'weather') return decidePlace(first, second, query, ['lang', 'include'])
  if (name === 'forecast') return decidePlace(first, second, query, ['days', 'include'])
  return name === 'locations' ? decidePlace(first, second, query, []) : absent
}

const decidePlace = (type: string, id: string, query: string, names: readonly string[]): Decision => {
  const given = parametersOf(query, names)
  const lang = languageOf(given)
  const days = numberOf(given?.get('days'), 1, 7, 7)
  const included = additionsOf(given, ['text'])
  if (!given || lang === undefined || days === undefined || !included || !isType(type)) return bad
  const hasWords = included.includes('text')
  // The forecast has a language only for its words.
  if (hasWords && names.includes('days')) {
    const named = parametersOf(query, ['lang'])
    if (!named || languageOf(named) === undefined) return bad
  }
  const place = placeOf(type, id)
  if (!place) return absent
  if (names.includes('lang')) return { statuses: [200], wanted: { kind: 'weather', place, lang, hasWords } }
  if (names.includes('days')) return { statuses: [200], wanted: { kind: 'forecast', place, days, hasWords } }
  return { statuses: [200], wanted: { kind: 'detail', place } }
}

const decidePoint = (lat: string, lng: string, query: string): Decision => {
  const given = parametersOf(query, ['lang', 'include'])
  const lang = languageOf(given)
  const included = additionsOf(given, ['place', 'text'])
  const [latitude, longitude] = [degreesOf(lat, 20, 27), degreesOf(lng, 87.5, 93)]
  if (!given || lang === undefined || latitude === undefined || longitude === undefined || !included)
    return bad
  const [hasWords, hasPlace] = [included.includes('text'), included.includes('place')]
  return { statuses: [200], wanted: { kind: 'point', latitude, longitude, lang, hasWords, hasPlace } }
}

const [longestList, mostPlaces] = [5_000, 100]

/** Undefined for a place that has an error in its position. */
const decideMany = (name: 'weather' | 'forecast', query: string): Decision => {
  const list = parametersOf(query, ['places'])
  if (list && !list.has('places')) return absent
  const given = parametersOf(query, ['places', name === 'weather' ? 'lang' : 'days'])
  const [lang, days] = [languageOf(given), numberOf(given?.get('days'), 1, 7, 7)]
  const text = given?.get('places') ?? ''
  if (lang === undefined || days === undefined || text === '' || text.length > longestList) return bad
  const places = [...new Set(itemsOf(text))]
  if (places.length > mostPlaces) return bad
  const isWeather = name === 'weather'
  const own = isWeather ? `lang=${lang}` : `days=${days}`
  const wantedOf = (item: string): Wanted | undefined => {
    const [type = '', first = '', second, ...more] = item.split('/')
    if (type === 'coords')
      return second === undefined || more.length > 0
        ? undefined
        : decidePoint(first, second, `lang=${lang}`).wanted
    return first === '' || second !== undefined
      ? undefined
      : decidePlace(type, first, own, [isWeather ? 'lang' : 'days']).wanted
  }
  const items = places.map(wantedOf)
  return { statuses: [200], wanted: { kind: 'many', items, days: isWeather ? undefined : days } }
}

const parents: Readonly<Record<string, string>> = {
  district: 'division_id',
  upazila: 'district_id',
  union: 'upazila_id',
}
const longestSearch = 100
/** A larger offset may be refused, or lead to an empty page. */
const maxOffset = 1_000_000_000

const decideList = (query: string): Decision => {
  const given = parametersOf(query, ['type', ...Object.values(parents), 'q', 'limit', 'offset'])
  if (!given) return bad
  const type = given.get('type')
  const limit = numberOf(given.get('limit'), 1, 100, 50)
  const offset = numberOf(given.get('offset'), 0, Number.POSITIVE_INFINITY, 0)
  const q = (given.get('q') ?? '').trim()
  if (type === undefined || !isType(type) || limit === undefined || offset === undefined) return bad
  if ([...q].length > longestSearch) return bad
  if (offset > maxOffset) return { statuses: [200, 400] }
  return {
    statuses: [200],
    wanted: { kind: 'list', type, parentId: given.get(parents[type] ?? '') || undefined, q, limit, offset },
  }
}

const itemsOf = (list: string): string[] => list.split(',').map(item => item.trim())
const lists = ['places', 'include']

/** The parameters of these names; undefined when one is given twice, is not percent-encoded UTF-8, or is a list with brackets. */
const parametersOf = (query: string, names: readonly string[]): Map<string, string> | undefined => {
  const found = new Map<string, string>()
  for (const pair of query.split('&')) {
    const [rawName = '', ...values] = pair.split('=')
    const name = decoded(rawName.replaceAll('+', ' '))
    const [rawList = '', ...brackets] = rawName.split(/\[|%5b/i)
    const list = decoded(rawList) ?? ''
    if (brackets.length > 0 && lists.includes(list) && names.includes(list)) return undefined
    if (name === undefined || !names.includes(name)) continue
    const value = decoded(values.join('=').replaceAll('+', ' '))
    if (value === undefined || found.has(name)) return undefined
    found.set(name, value)
  }
  return found
}

const languageOf = (given: Map<string, string> | undefined): string | undefined => {
  const lang = given?.get('lang') ?? 'bn'
  return lang === 'bn' || lang === 'en' ? lang : undefined
}

/** Undefined where one is unknown. */
const additionsOf = (
  given: Map<string, string> | undefined,
  known: readonly string[],
): readonly string[] | undefined => {
  const text = given?.get('include') ?? ''
  const named = text === '' ? [] : itemsOf(text)
  return named.every(name => known.includes(name)) ? named : undefined
}

const within = (text: string, form: RegExp, least: number, most: number): number | undefined =>
  form.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined
const numberOf = (
  text: string | undefined,
  least: number,
  most: number,
  usual: number,
): number | undefined => (text === undefined ? usual : within(text, /^[0-9]+$/, least, most))
const degreesOf = (text: string, least: number, most: number): number | undefined =>
  within(text, /^[-+]?[0-9]+(?:\.[0-9]+)?$/, least, most)

/** Undefined where it is not percent-encoded UTF-8. */
const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
