// Promises 3, 4, 14 and 15: weather is what the provider said for that cell and time in one body, not older than promised, for now,
// and says no longer than it is; never older than what the gateway served before or what was purged. How a body is compared is in provider-body.ts.

import type { Answer, SaidByProvider } from '../history.ts'
import {
  durationOf,
  type Facts,
  hour,
  isListed,
  isoOf,
  last,
  minute,
  second,
  ttlOf,
  zoneMs,
} from './facts.ts'
import { bodiesFor, hasSame, type WeatherBody } from './provider-body.ts'
import type { Rule } from './rule.ts'

type Served = {
  readonly answer: Answer
  readonly body: WeatherBody
  readonly cell: string
  /** What said this weather: of equal bodies the latest. */
  readonly said: SaidByProvider | undefined
}
type Sourced = Served & { readonly said: SaidByProvider }

const known = new WeakMap<Facts, Served[]>()

const servedIn = (facts: Facts): Served[] => {
  const served = known.get(facts) ?? facts.answers.flatMap(answer => servedBy(facts, answer))
  known.set(facts, served)
  return served
}
const sourcedIn = (facts: Facts): Sourced[] =>
  servedIn(facts).filter((served): served is Sourced => served.said !== undefined)

type Located = WeatherBody & { location: { latitude: number; longitude: number } }

/** What an answer says: of a list the weather of each of its places. */
const servedBy = (facts: Facts, answer: Answer): Served[] => {
  const isWeather = isListed(answer) || /^\/(?:weather|forecast)\//.test(answer.path)
  if (answer.status !== 200 || answer.method === 'HEAD' || !isWeather) return []
  let bodies: (Located | { error: string })[]
  try {
    bodies = [JSON.parse(answer.body)].flat()
  } catch {
    // Promise 2.
    return []
  }
  return bodies.flatMap(body => {
    if ('error' in body) return []
    const { latitude, longitude } = body.location
    const before = bodiesFor(facts.said, latitude, longitude).filter(({ said }) => said.seq < answer.seq)
    const source = before.findLast(element => hasSame(body, element))
    return { answer, body, cell: `${latitude} ${longitude}`, said: source?.said }
  })
}

/** The longest time after it was said that weather may be served, by the settings in force. */
const longestUseMs = (facts: Facts, { sent, seq }: Answer): number =>
  Math.max(
    ...[sent.seq, seq].map(at => {
      const settings = facts.settingsAt(at)
      const freshFor = durationOf(settings['cache.freshFor'])
      const most = Math.max(freshFor, durationOf(settings['cache.freshForAtMost']))
      const spread = 1.2
      return most * spread + Math.min(minute, freshFor / 10) + durationOf(settings['cache.staleFor'])
    }),
  )

// A request that waits, and the whole seconds of headers.
const allowanceMs = 10 * second

export const saidByProvider: Rule = (facts, report) => {
  for (const { answer, said } of servedIn(facts)) {
    report.saw()
    if (!said) {
      report.broken(answer, 'the provider never said that')
      continue
    }
    const age = answer.sent.at - said.at
    const most = longestUseMs(facts, answer) + facts.skewSpan + allowanceMs
    if (age > most) report.broken(answer, `said ${age / second} s ago, and ${most / second} s are promised`)
    const modified = Date.parse(answer.headers['last-modified'] ?? '')
    // A request that was under way while the clock moved may have been sent earlier; nothing may look newer than it is.
    if (!(modified <= said.at + facts.skewSpan + allowanceMs))
      report.broken(answer, `last-modified ${isoOf(modified)}, and it was said ${isoOf(said.at)}`)
  }
}

const quarter = hour / 4
const floor = (at: number, step: number): number => Math.floor(at / step) * step
/** The local time at which a quarter-hour, an hour or a day begins. */
const localOf = (at: number, step: number): string => new Date(floor(at + zoneMs, step)).toISOString()

export const ofNow: Rule = (facts, report) => {
  for (const { answer, body } of servedIn(facts)) {
    const skew = facts.skewOf(answer)
    const [from, to] = [answer.sent.at + skew, answer.at + skew]
    const instants = [from]
    for (let at = floor(from, quarter) + quarter; at <= to; at += quarter) instants.push(at)
    report.saw()
    const wrong = beginsOf(body).find(([time, step]) =>
      instants.every(at => localOf(at, step).slice(0, time.length) !== time),
    )
    if (wrong) report.broken(answer, `it is for ${wrong[0]}, at ${localOf(from, second).slice(0, 16)}`)
    const cached = answer.headers['cache-control'] ?? ''
    const [, seconds] = /^private, max-age=(\d+)$/.exec(cached) ?? []
    const most = rightForMs(body, answer, [from, to])
    if (seconds === undefined || Number(seconds) * second > most)
      report.broken(answer, `cache-control is ${cached}, and it is right for ${Math.floor(most / second)} s`)
  }
}

/** How long an answer stays right at most: until its shortest section ends, or its timeline turns stale. */
const rightForMs = (body: WeatherBody, answer: Answer, instants: readonly number[]): number => {
  const step = body.current ? quarter : 24 * hour
  const ends = instants.map(at => floor(at + zoneMs, step) + step - zoneMs - at)
  const isOver = new Set(instants.map(at => floor(at + zoneMs, step))).size > 1
  const ttl = ttlOf(answer)
  const freshMs = Number.isNaN(ttl) ? step : Math.max(0, ttl)
  return Math.min(isOver ? step : Math.max(...ends), freshMs + second)
}

/** The first time of each section, and how long the section's steps are. */
const beginsOf = ({ current, hourly, daily }: WeatherBody): (readonly [string, number])[] => [
  ...(current ? [[String(current.time), quarter] as const] : []),
  ...(hourly ? [[String((hourly.time as unknown[])[0]), hour] as const] : []),
  ...(daily ? [[String((daily.time as unknown[])[0]), 24 * hour] as const] : []),
]

const harmsRedis = /^(?:link|store|empty|restart-store|fail-over)$/
// Of a list it is not known which place came from where.
const isInRedis = /fwd=miss(?!.*detail=")|; detail=redis/

/** Hands on each answer with those before it at the same place. */
const inOrder = (
  all: readonly Sourced[],
  placeOf: (served: Sourced) => string,
  look: (served: Sourced, before: readonly Sourced[]) => void,
): void => {
  for (const those of Map.groupBy(all, placeOf).values())
    for (const [i, served] of those.entries()) look(served, those.slice(0, i))
}

/** What a gateway reads of Redis is not older than what one had read or written there before, while Redis was whole for all. */
const sharedNeverBack: Rule = (facts, report) => {
  const harm = facts.steps.find(({ step }) => harmsRedis.test(step.do))?.seq ?? last
  const cacheOf = ({ answer }: Served): string => answer.headers['cache-status'] ?? ''
  const shared = sourcedIn(facts).filter(
    served => served.answer.seq <= harm && isInRedis.test(cacheOf(served)),
  )
  const placeOf = ({ cell }: Served): string => cell
  inOrder(shared, placeOf, (served, before) => {
    if (before.length === 0 || !cacheOf(served).includes('detail=redis')) return
    const { answer, said } = served
    report.saw()
    const ahead = before.find(each => each.answer.seq < answer.sent.seq && each.said.seq > said.seq)
    if (ahead)
      report.broken(
        answer,
        `Redis has what was said at #${said.seq}, and #${ahead.answer.seq} had #${ahead.said.seq}`,
      )
  })
}

export const neverBack: Rule = (facts, report) => {
  sharedNeverBack(facts, report)
  const placeOf = ({ answer, cell }: Served): string => `${answer.gateway}.${answer.run} ${cell}`
  inOrder(sourcedIn(facts), placeOf, ({ answer, said }, before) => {
    if (before.length === 0) return
    report.saw()
    const since = said.at + facts.skewSpan + allowanceMs
    const ahead = before.find(each => each.answer.seq < answer.sent.seq && each.said.at > since)
    if (ahead)
      report.broken(answer, `said ${isoOf(said.at)}, and #${ahead.answer.seq} had ${isoOf(ahead.said.at)}`)
  })
}

export const purgedIsGone: Rule = (facts, report) => {
  const purges = facts.of('purged').filter(({ hard }) => hard)
  for (const { answer, said } of sourcedIn(facts)) {
    const purge = purges.findLast(each => facts.isKnown(answer.gateway, each, answer.sent))
    if (!purge) continue
    report.saw()
    if (said.seq < purge.seq) report.broken(answer, `said before the purge at #${purge.seq}`)
  }
}
