// Target: paths and queries. An oracle that shares no code with the gateway decides which status is right and what a 200
// must show. The pages of a list must fit together.

import fc from 'fast-check'
import { demand } from '../fault.ts'
import { checkAnswer, jsonOf } from '../http/answer-rules.ts'
import { converse } from '../http/conversation.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { Answer } from '../http/response-reader.ts'
import { decide, type Wanted } from '../oracle/parameters.ts'
import { placeOf, places } from '../oracle/places.ts'
import { checkForecast, checkWeather, type Interval, type WeatherBody } from '../oracle/weather-body.ts'
import { batchesOf, chance, type Target } from '../target.ts'
import { requestTargets } from './request-targets.ts'

type ParameterCase = { readonly endpoint: string; readonly isHead: boolean; readonly target: string }
type Listed = Readonly<Record<string, unknown>>

const cases = fc
  .tuple(requestTargets, chance(10))
  .map(([made, isHead]): ParameterCase => ({ ...made, isHead }))

const checkBody = (body: Listed, wanted: Wanted, when: Interval): void => {
  const location = (body.location ?? {}) as Listed
  const has = (is: boolean, what: string): void =>
    demand(is, 'not the requested place', `${what}: ${JSON.stringify(location)}`)
  if (wanted.kind === 'list') {
    checkList(body, wanted)
    return
  }
  if (wanted.kind === 'many') {
    checkMany(body as unknown as readonly Listed[], wanted, when)
    return
  }
  if (wanted.kind === 'point') {
    const { latitude, longitude } = wanted
    const name = `${latitude.toFixed(3)}, ${longitude.toFixed(3)}`
    has(location.latitude === latitude && location.longitude === longitude, 'coordinates')
    has(location.type === 'coords' && location.name_en === name && location.name_bn === null, 'names')
    has('place' in body === wanted.hasPlace, 'the places near it')
    checkWords(body, wanted.hasWords)
    checkWeather(body as WeatherBody, when)
    return
  }
  const { place } = wanted
  const isPlace =
    location.id === place.id && location.type === place.type && location.name_en === place.name_en
  has(isPlace, `${place.type} ${place.id}`)
  if (wanted.kind === 'detail') has(location.population === place.population, 'detail')
  if (wanted.kind !== 'detail') checkWords(body, wanted.hasWords)
  if (wanted.kind === 'forecast') checkForecast(body as WeatherBody, when, wanted.days)
  if (wanted.kind !== 'weather') return
  const name = wanted.lang === 'en' ? place.name_en || place.name_bn : place.name_bn || place.name_en
  has(location.name === name, `name in ${wanted.lang}`)
  checkWeather(body as WeatherBody, when)
}

/** Each place has the body of its own endpoint, or its error. */
const checkMany = (
  bodies: readonly Listed[],
  { items, days }: Wanted & { kind: 'many' },
  when: Interval,
): void => {
  demand(bodies.length === items.length, 'another number of places', `${bodies.length} of ${items.length}`)
  for (const [i, wanted] of items.entries()) {
    const body = bodies[i] ?? {}
    const isError = typeof body.error === 'string' && typeof body.code === 'string'
    demand(isError === !wanted, 'a place with an error, or without', JSON.stringify(body).slice(0, 200))
    if (wanted?.kind === 'point' && days !== undefined) checkForecast(body as WeatherBody, when, days)
    else if (wanted) checkBody(body, wanted, when)
  }
}

/** Each block has as many words and icons as codes, or none. */
const checkWords = (body: Listed, hasWords: boolean): void => {
  for (const name of ['current', 'hourly', 'daily']) {
    const block = body[name] as Listed | undefined
    if (!block) continue
    const [codes = [], texts = [], icons = []] = ['weather_code', 'weather_text', 'icon'].map(
      column => [block[column]].flat() as unknown[],
    )
    const fits = (words: unknown[]) =>
      hasWords
        ? words.length === codes.length &&
          words.every((word, i) => (codes[i] === null ? word === null : typeof word === 'string'))
        : words.length === 1 && words[0] === undefined
    demand(fits(texts) && fits(icons), 'words that do not fit the codes', `${name}: ${texts} ${icons}`)
  }
}

const idsOf = (body: Listed): string[] => ((body.results ?? []) as Listed[]).map(({ id }) => String(id))

const checkList = (body: Listed, { type, parentId, q, limit, offset }: Wanted & { kind: 'list' }): void => {
  const ids = idsOf(body)
  const total = Number(body.total)
  const has = (is: boolean, what: string): void =>
    demand(
      is,
      'a list that is not right',
      `${what}; total ${body.total}, ${ids.length} results: ${ids.slice(0, 5)}`,
    )
  has(Number.isInteger(total) && body.type === type, 'total or type')
  has(ids.length === Math.max(0, Math.min(limit, total - offset)), `limit ${limit}, offset ${offset}`)
  const among = places.filter(
    place => place.type === type && (parentId === undefined || place.parent_id === parentId),
  )
  if (q === '') {
    const page = among.slice(offset, offset + limit).map(({ id }) => id)
    has(total === among.length && page.every((id, i) => id === ids[i]), `there are ${among.length}`)
    return
  }
  // The oracle does not decide which places a search finds, except that exact names must be found.
  const order = new Map(among.map(({ id }, i) => [id, i]))
  const positions = ids.map(id => order.get(id) ?? -1)
  has(
    positions.every((at, i) => at > (positions[i - 1] ?? -1)),
    'places of another kind or order',
  )
  const called = among.filter(({ name_en, name_bn }) => name_en === q || name_bn === q)
  has(called.length <= total, `${called.length} places are called so`)
  const isWhole = offset === 0 && total <= limit
  has(!isWhole || called.every(({ id }) => ids.includes(id)), 'a place that is called so is missing')
}

const checkNext = ({ type }: Wanted & { kind: 'list' }, body: Listed, page: Answer): void => {
  demand(page.status === 200, 'a next page that is none', page.status)
  const next = jsonOf(page) ?? {}
  const [before, after] = [idsOf(body), idsOf(next)]
  const fits = after.length > 0 && after.every(id => !before.includes(id) && placeOf(type, id))
  demand(
    fits && next.total === body.total,
    'pages that do not fit together',
    `${body.total} and ${next.total}; ${after.slice(0, 5)}`,
  )
}

export const parameters: Target<ParameterCase> = {
  name: 'parameters',
  share: 2,
  checks: 'status and body as in the contract, pages that fit together, never 5xx',
  batches: batchesOf(cases, 500),
  atOnce: 12,
  setting: {},
  kindOf: ({ endpoint }) => endpoint,
  print: ({ isHead, target }) => `${isHead ? 'HEAD' : 'GET'} ${target}`,
  open: async system => {
    const send = async (target: string, isHead: boolean): Promise<Answer> => {
      const bytes = bytesWithKey(requestText({ method: isHead ? 'HEAD' : 'GET', target }), system.key)
      const { answers, fault } = await converse({ url: system.gateway().apiUrl, bytes, isHead: () => isHead })
      if (fault) throw fault
      demand(answers[0], 'a request without an answer', target)
      return answers[0]
    }
    return {
      run: async ({ target, isHead }) => {
        const sent = Date.now()
        const answer = await send(target, isHead)
        const { statuses, wanted } = decide(target)
        checkAnswer(answer, !isHead)
        const rule =
          answer.status >= 500 ? '5xx although nothing failed' : 'another status than the contract says'
        demand(
          statuses.includes(answer.status),
          rule,
          `${answer.status} in place of ${statuses.join(' or ')}`,
        )
        if (answer.status !== 200 || isHead || !wanted) return
        const body = jsonOf(answer) ?? {}
        checkBody(body, wanted, [sent, Date.now()])
        const next = /<(\?[^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
        if (wanted.kind === 'list' && next !== undefined)
          checkNext(wanted, body, await send(`/api/v1/locations${next}`, false))
      },
    }
  },
}
