// Target: paths and queries. An oracle that shares no code with the gateway decides which status is right and what a 200
// must show. The pages of a list must fit together.

import { type Finding, finding } from '../finding.ts'
import { brokenRules, headerOf, jsonOf } from '../http/answer-rules.ts'
import { converse, whole } from '../http/conversation.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { Answer } from '../http/response-reader.ts'
import { type Decision, decide, type Wanted } from '../oracle/parameters.ts'
import { placeOf, places } from '../oracle/places.ts'
import { brokenForecast, brokenWeather, type Interval, type WeatherBody } from '../oracle/weather-body.ts'
import type { Random } from '../random.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { endpointNames, targetFor } from './request-targets.ts'

type ParameterCase = { readonly endpoint: string; readonly method: 'GET' | 'HEAD'; readonly target: string }

type Listed = Readonly<Record<string, unknown>>

const generate = (random: Random): ParameterCase => {
  const endpoint = random.pick(endpointNames)
  return { endpoint, method: random.chance(0.1) ? 'HEAD' : 'GET', target: targetFor(random, endpoint) }
}

/** The target without each of its parameters, then with each of them at half its length. */
function* smaller(given: ParameterCase): Generator<ParameterCase> {
  const [path = '', query] = given.target.split(/\?(.*)/s)
  if (query === undefined) return
  const pairs = query.split('&')
  const withPairs = (left: readonly string[]): ParameterCase => ({
    ...given,
    target: left.length === 0 ? path : `${path}?${left.join('&')}`,
  })
  for (let i = 0; i < pairs.length; i++) yield withPairs(pairs.toSpliced(i, 1))
  for (const [i, pair] of pairs.entries())
    if (pair.length > 40) yield withPairs(pairs.with(i, pair.slice(0, pair.length / 2)))
}

const open = async (system: System): Promise<Session<ParameterCase>> => {
  const send = async (
    method: string,
    target: string,
  ): Promise<{ answer?: Answer; findings: readonly Finding[] }> => {
    const bytes = bytesWithKey(requestText({ method, target }), system.keys[0].key)
    const { answers, findings } = await converse(system.gateway().api, bytes, whole, () => method === 'HEAD')
    return { ...(answers[0] ? { answer: answers[0] } : {}), findings }
  }

  return {
    run: async ({ method, target }) => {
      const sent = Date.now()
      const { answer, findings } = await send(method, target)
      if (!answer) return [...findings, finding('a request without an answer', target)]
      const decision = decide(withoutPlaceholders(target))
      const found = [...findings, ...brokenRules(answer, method === 'GET'), ...wrongStatus(answer, decision)]
      if (found.length > 0 || answer.status !== 200 || method === 'HEAD' || !decision.wanted) return found
      const body = jsonOf(answer) ?? {}
      found.push(...brokenBody(body, decision.wanted, [sent, Date.now()]))
      const next = /<(\?[^>]*)>; rel="next"/.exec(headerOf(answer, 'link') ?? '')?.[1]
      if (decision.wanted.kind !== 'list' || next === undefined) return found
      const page = (await send('GET', `/api/v1/locations${next}`)).answer
      return [...found, ...brokenNext(decision.wanted, body, page)]
    },
    close: async () => {},
  }
}

// Brackets and keys have no meaning in a target.
const withoutPlaceholders = (target: string): string => target.replaceAll(/<[A-Z]+>/g, 'x')

const wrongStatus = ({ status }: Answer, { statuses }: Decision): Finding[] =>
  statuses.includes(status)
    ? []
    : [
        finding(
          status >= 500 ? '5xx although nothing failed' : 'another status than the contract says',
          `${status} in place of ${statuses.join(' or ')}`,
        ),
      ]

const brokenBody = (body: Listed, wanted: Wanted, when: Interval): Finding[] => {
  const location = (body.location ?? {}) as Listed
  const other = (what: string) => finding('not the requested place', `${what}: ${JSON.stringify(location)}`)
  switch (wanted.kind) {
    case 'list':
      return brokenList(body, wanted)
    case 'point': {
      const { latitude, longitude } = wanted
      const name = `${latitude.toFixed(3)}, ${longitude.toFixed(3)}`
      const isRight =
        location.latitude === latitude &&
        location.longitude === longitude &&
        location.type === 'coords' &&
        location.name_en === name &&
        location.name_bn === null
      return [...(isRight ? [] : [other('coordinates')]), ...brokenWeather(body as WeatherBody, when)]
    }
    default: {
      const { place } = wanted
      if (location.id !== place.id || location.type !== place.type || location.name_en !== place.name_en)
        return [other(`${place.type} ${place.id}`)]
      if (wanted.kind === 'forecast') return brokenForecast(body as WeatherBody, when, wanted.days)
      if (wanted.kind === 'detail') return location.population === place.population ? [] : [other('detail')]
      const name = wanted.lang === 'en' ? place.name_en || place.name_bn : place.name_bn || place.name_en
      return [
        ...(location.name === name ? [] : [other(`name in ${wanted.lang}`)]),
        ...brokenWeather(body as WeatherBody, when),
      ]
    }
  }
}

const idsOf = (body: Listed): string[] => ((body.results ?? []) as Listed[]).map(({ id }) => String(id))

const brokenList = (
  body: Listed,
  { type, parentId, q, limit, offset }: Wanted & { kind: 'list' },
): Finding[] => {
  const ids = idsOf(body)
  const total = Number(body.total)
  const wrong = (what: string) =>
    finding(
      'a list that is not right',
      `${what}; total ${body.total}, ${ids.length} results: ${ids.slice(0, 5)}`,
    )
  if (!Number.isInteger(total) || body.type !== type) return [wrong('total or type')]
  if (ids.length !== Math.max(0, Math.min(limit, total - offset)))
    return [wrong(`limit ${limit}, offset ${offset}`)]
  const among = places.filter(
    place => place.type === type && (parentId === undefined || place.parent_id === parentId),
  )
  if (q === '') {
    const page = among.slice(offset, offset + limit).map(({ id }) => id)
    return total === among.length && page.every((id, i) => id === ids[i])
      ? []
      : [wrong(`there are ${among.length}`)]
  }
  // The oracle does not decide which places a search finds, except that exact names must be found.
  const order = new Map(among.map(({ id }, i) => [id, i]))
  const positions = ids.map(id => order.get(id) ?? -1)
  if (positions.some((at, i) => at === -1 || at <= (positions[i - 1] ?? -1)))
    return [wrong('places of another kind or order')]
  const called = among.filter(({ name_en, name_bn }) => name_en === q || name_bn === q)
  if (called.length > total) return [wrong(`${called.length} places are called so`)]
  return offset === 0 && total <= limit && called.some(({ id }) => !ids.includes(id))
    ? [wrong('a place that is called so is missing')]
    : []
}

const brokenNext = (wanted: Wanted & { kind: 'list' }, body: Listed, page: Answer | undefined): Finding[] => {
  const next = (page && jsonOf(page)) ?? {}
  if (page?.status !== 200) return [finding('a next page that is none', String(page?.status))]
  const [before, after] = [idsOf(body), idsOf(next)]
  if (
    next.total !== body.total ||
    after.length === 0 ||
    after.some(id => before.includes(id) || !placeOf(wanted.type, id))
  )
    return [
      finding('pages that do not fit together', `${body.total} and ${next.total}; ${after.slice(0, 5)}`),
    ]
  return []
}

export const parameters: Target<ParameterCase> = {
  name: 'parameters',
  share: 2,
  checks:
    'the status that the contract says, what a 200 must show, lists and pages that fit together, never 5xx, heads below 8 KiB',
  batch: 300,
  atOnce: 12,
  setting: {},
  generate,
  shapeOf: ({ endpoint }) => endpoint,
  isAlone: () => false,
  smaller,
  print: ({ method, target }) => `${method} ${target}`,
  open,
}
