// Promises 3, 4, 14 and 15: weather is what the provider said for that cell and time in one body, not older than promised, for now,
// and says no longer than it is; never older than what the gateway served before or what was purged. How a body is compared is in provider-body.ts.

import type { Answer, Moment, SaidByProvider } from '../history.ts'
import { durationOf, type Facts, hour, isoOf, last, minute, second, ttlOf, zoneMs } from './facts.ts'
import { listsOfLoads } from './list-loads.ts'
import { begunAt, loadedIn, mayBePurged, sameLoads, spread } from './loads.ts'
import { isListed, isOfWeather } from './paths.ts'
import type { WeatherBody } from './provider-body.ts'
import type { Rule } from './rule.ts'
import { isOnlySource, type Served, type Sourced, servedIn, sourcedIn } from './served.ts'

/** The longest time after it was said that weather may be served, by the settings in force. */
const longestUseMs = (facts: Facts, answer: Answer): number => {
  const [, fresh] = freshForMs(facts, answer)
  const stale = [answer.sent.seq, answer.seq].map(at => durationOf(facts.settingsAt(at)['cache.staleFor']))
  return fresh + Math.max(...stale)
}

// A request that waits, and the whole seconds of headers.
const allowanceMs = 10 * second

export const saidByProvider: Rule = (facts, report) => {
  for (const served of servedIn(facts)) {
    const { answer, said } = served
    report.saw()
    if (!said) {
      report.broken(answer, 'the provider never said that')
      continue
    }
    const purge = purgeOf(facts, { ...served, said })
    if (purge && ttlOf(answer) > 0) report.broken(answer, `fresh, and purged at #${purge.seq}`)
    const age = answer.sent.at - said.at
    const most = longestUseMs(facts, answer) + facts.skewSpan + allowanceMs
    if (age > most) report.broken(answer, `said ${age / second} s ago, and ${most / second} s are promised`)
    const modified = Date.parse(answer.headers['last-modified'] ?? '')
    // A request that was under way while the clock moved may have been sent earlier; nothing may look newer than it is.
    if (!(modified <= said.at + facts.skewSpan + allowanceMs))
      report.broken(answer, `last-modified ${isoOf(modified)}, and it was said ${isoOf(said.at)}`)
  }
  for (const [answer, all] of Map.groupBy(servedIn(facts), ({ answer }) => answer)) {
    const sources = all.flatMap(({ said }) => said ?? [])
    if (sources.length < all.length) continue
    const fault = isListed(answer) ? tooOld(facts, answer, sources) : agreement(facts, answer, sources[0])
    // Several bodies may have the same days.
    if (fault && all.every(({ said, ...served }) => said && isOnlySource(facts, { ...served, said })))
      report.broken(answer, fault)
  }
  const loaded = loadedIn(facts)
  sameLoads(facts, loaded, report)
  listsOfLoads(facts, loaded, report)
}

/** What made this weather stale for sure, and there is no other with the same values. */
const purgeOf = (facts: Facts, served: Sourced): Moment | undefined => {
  const { answer, said } = served
  if (facts.firstTrouble <= answer.seq || isListed(answer)) return undefined
  const purge = facts
    .of('purged')
    .findLast(each => said.seq < each.seq && facts.isKnown(answer.gateway, each, answer.sent))
  return purge && isOnlySource(facts, served) ? purge : undefined
}

/** A list was modified when the oldest of its places was. */
const tooOld = (
  facts: Facts,
  { headers }: Answer,
  sources: readonly SaidByProvider[],
): string | undefined => {
  const modified = Date.parse(headers['last-modified'] ?? '')
  const least = Math.min(...sources.map(said => begunAt(facts, said)))
  return modified < least - facts.skewSpan - second
    ? `last-modified ${isoOf(modified)}, and the provider was asked after ${isoOf(least)}`
    : undefined
}

/** What the cache says it did, and for how long its weather is fresh, follow from when the provider said it. */
const agreement = (facts: Facts, answer: Answer, said: SaidByProvider | undefined): string | undefined => {
  if (!said) return undefined
  const older = tooOld(facts, answer, [said])
  if (older) return older
  const { sent, at, seq, headers } = answer
  const cached = headers['cache-status'] ?? ''
  if (/fwd=miss; stored/.test(cached) && said.seq < sent.seq)
    return `${cached}, and it was said at #${said.seq}`
  const [least, most] = freshForMs(facts, answer)
  const ttl = ttlOf(answer)
  const modified = Date.parse(headers['last-modified'] ?? '')
  // Where clocks differ, it says no later time than its own.
  const fetchedAt = facts.skewSpan === 0 ? modified : said.at + facts.skewSpan
  const longest = fetchedAt + most + facts.skewSpan + second - sent.at
  if (ttl > longest) return `${cached}, and it is fresh for ${longest / second} s`
  // What was purged, or may have been while Redis was away, is stale earlier.
  const isDefinite =
    facts.skewSpan === 0 &&
    facts.firstTrouble > seq &&
    facts.settingsAt(seq)['cache.freshness'] === 'age' &&
    !mayBePurged(facts, said, seq)
  const shortest = modified + least - at - second
  return isDefinite && ttl < shortest ? `${cached}, and it is fresh for ${shortest / second} s` : undefined
}

/** The least and the most time after it was said that weather is fresh, by the settings in force. */
const freshForMs = (facts: Facts, { sent, seq }: Answer): readonly [number, number] => {
  const settings = [sent.seq, seq].map(at => facts.settingsAt(at))
  const usual = settings.map(each => durationOf(each['cache.freshFor']))
  const longest = settings.map(each => durationOf(each['cache.freshForAtMost']))
  const lead = Math.min(minute, Math.max(...usual) / 10)
  return [Math.min(...usual), Math.max(...usual, ...longest) * spread + lead]
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
  }
  for (const answer of facts.answers) {
    if ((answer.status !== 200 && answer.status !== 304) || !isOfWeather(answer.path)) continue
    const seconds = Number(/max-age=(\d+)$/.exec(answer.headers['cache-control'] ?? '')?.[1])
    const [least, most] = rightFor(facts, answer)
    if (!(seconds >= least && seconds <= most))
      report.broken(answer, `it says right for ${seconds} s, and ${least} to ${most} s are`)
  }
}

/** How many seconds an answer stays right: until its shortest section ends, or its timeline turns stale. */
const rightFor = (facts: Facts, answer: Answer): readonly [number, number] => {
  const step = answer.path.startsWith('/weather') ? quarter : 24 * hour
  const instants = [answer.sent.at, answer.at].map(at => at + facts.skewOf(answer) + zoneMs)
  const [most = 0, least = 0] = instants.map(at => floor(at, step) + step - at)
  const isOver = new Set(instants.map(at => floor(at, step))).size > 1
  const ttl = ttlOf(answer)
  const fresh = Number.isNaN(ttl) ? refusedForMs : Math.max(0, ttl)
  // A list with an error is looked at again soon.
  const isShort = isListed(answer) && hasError.test(answer.headers['cache-status'] ?? '')
  const seconds = (ms: number): number => Math.floor(Math.min(ms, fresh) / second)
  return [
    isOver || isShort ? 0 : seconds(least),
    seconds(isShort ? Math.min(most, refusedForMs) : isOver ? step : most),
  ]
}
const refusedForMs = minute
const hasError = /detail=".*\d (?!hit|stale|miss)/

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
    const ahead = before.find(
      each => each.answer.seq < answer.sent.seq && each.said.seq > said.seq && isOnlySource(facts, each),
    )
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
    // Of an earlier body with the same values nobody can tell.
    const ahead = before.find(
      each => each.answer.seq < answer.sent.seq && each.said.at > since && isOnlySource(facts, each),
    )
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
