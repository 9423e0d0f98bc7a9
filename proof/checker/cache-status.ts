// The header `cache-status` of one answer: its form, and what agrees with the answer's path, body and itself. How long weather is fresh, and
// whether others of its load agree, is in weather.ts, loads.ts and list-loads.ts.

import type { Answer } from '../history.ts'
import { type Facts, singlePathsOf } from './facts.ts'
import { isListed } from './paths.ts'
import { type Catalogue, whereOf } from './places.ts'

const single = new RegExp(
  /^abohawa; (?:hit|fwd=miss(?:; collapsed)?; stored|fwd=stale(?:; collapsed)?); ttl=(?<ttl>-?\d+)/.source +
    /(?:; detail=(?<tier>\w+))?(?:; upstream=(?<upstream>[\w-]+))?; key="(?<lat>[\d.]+),(?<lng>[\d.]+)"$/
      .source,
)

/** What the cache did: in a form of RFC 9211, for the right cell, of a tier and an upstream that the fleet has. */
export const cacheFault = (
  facts: Facts,
  answer: Answer,
  catalogue: Catalogue,
  value = '',
): string | undefined => {
  if (isListed(answer)) return listFault(answer, value)
  const { ttl, tier, upstream, lat, lng } = single.exec(value)?.groups ?? {}
  if (ttl === undefined) return 'it is of another form'
  const where = whereOf(catalogue, answer.path)
  const isNear = (one: string | undefined, other: number | undefined): boolean =>
    Math.abs(Number(one) - (other ?? Number.NaN)) <= 0.0501
  if (!isNear(lat, where?.latitude) || !isNear(lng, where?.longitude)) return 'it is of another cell'
  const isMiss = value.includes('fwd=miss')
  const shared = facts.schedule.store === 'embedded' ? 'embedded' : 'redis'
  if (isMiss ? tier !== undefined : tier !== 'memory' && tier !== shared) return 'it has not this tier'
  if ((upstream !== undefined) !== (facts.schedule.hasFallback === true)) return 'the upstream is wrong'
  if (value.includes('; hit; ttl=-') && !mayBeLeft(facts, answer)) return 'it is stale, and nothing failed'
  return value.includes('fwd=stale') && Number(ttl) > 0 ? 'it is stale and fresh' : undefined
}

/** Whether stale weather may be left as it is: a load failed, or has no room. */
const mayBeLeft = ({ schedule, steps, configured, said, firstTrouble }: Facts, { seq }: Answer): boolean =>
  firstTrouble < seq ||
  steps.some(({ seq: at, step }) => at < seq && /^provider/.test(step.do)) ||
  said.some(call => call.seq < seq && call.status !== 200) ||
  [schedule.settings, ...configured.map(({ settings }) => settings)].some(settings =>
    Object.entries(settings).some(([name, value]) => name.startsWith('provider.budget.') && value !== ''),
  )

const summary =
  /^abohawa; (?:(?<how>hit|fwd=miss|fwd=stale); ttl=(?<ttl>-?\d+); )?detail="(?<detail>\d+ \w+(?:, \d+ \w+)*)"$/

/** Each place is counted once, and an error by its code. */
const listFault = (answer: Answer, value: string): string | undefined => {
  const { how, ttl, detail } = summary.exec(value)?.groups ?? {}
  if (detail === undefined) return 'it is of another form'
  const counts = new Map(detail.split(', ').map(each => [each.split(' ')[1], Number.parseInt(each, 10)]))
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const places = singlePathsOf(answer).length
  if (all !== places) return `it counts ${all} of ${places} places`
  const found = ['hit', 'stale', 'miss'].filter(name => counts.has(name))
  if ((how !== undefined) !== found.length > 0) return 'it has a result without weather'
  if (counts.has('miss') !== (how === 'fwd=miss')) return 'it has another result than its places'
  // The shortest of its places.
  if (Number(ttl) > 0 && counts.has('stale')) return 'it is stale and fresh'
  // A request that waits for a load from before it, across a clock that was moved forward, gets weather that is old already.
  const wasUnderWay = counts.has('miss') && Date.parse(answer.headers['last-modified'] ?? '') < answer.sent.at
  if (Number(ttl) < 0 && !counts.has('stale') && !wasUnderWay) return 'none of its places is stale'
  if (how === 'fwd=stale' && !counts.has('stale')) return 'it has another result than its places'
  if (answer.body === '') return undefined
  const codes = (JSON.parse(answer.body) as { code?: string }[]).flatMap(({ code }) => code ?? [])
  const wrong = codes.find(code => counts.get(code) !== codes.filter(each => each === code).length)
  return wrong === undefined ? undefined : `it miscounts ${wrong}`
}
