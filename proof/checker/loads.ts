// Part of promise 3: all answers with the weather of one load, those to HEAD and 304 too, agree about it. A load has one instant, and
// its weather one end of freshness; it was requested by who says that it missed, and is read from Redis once by each gateway.

import type { Answer, SaidByProvider } from '../history.ts'
import { durationOf, type Facts, isoOf, minute, second, ttlOf } from './facts.ts'
import { isListed, isOfWeather } from './paths.ts'
import type { Rule } from './rule.ts'
import { isOnlySource, sourcedIn } from './served.ts'

/** An answer with the weather of one place, and the load that it comes from. */
export type Loaded = {
  readonly answer: Answer
  readonly said: SaidByProvider
  readonly cell: string
  readonly modified: number
  /** When the gateway read its weather, by its own clock: not before, and not after. */
  readonly from: number
  readonly to: number
}

/** Of answers whose weather no other load brought; those without a body by the tag that they share with one that has it. */
export const loadedIn = (facts: Facts): Loaded[] => {
  const byTag = new Map<string, { said: SaidByProvider; cell: string }>()
  for (const served of sourcedIn(facts)) {
    const { answer, said, cell } = served
    const tag = answer.headers.etag
    if (tag !== undefined && !isListed(answer) && !byTag.has(tag) && isOnlySource(facts, served))
      byTag.set(tag, { said, cell: cellOf(answer) ?? cell })
  }
  return facts.answers.flatMap(answer => {
    const { status, path, sent, at, headers } = answer
    const source = byTag.get(headers.etag ?? '')
    if ((status !== 200 && status !== 304) || !isOfWeather(path) || isListed(answer) || !source) return []
    const skew = facts.skewOf(answer)
    const modified = Date.parse(headers['last-modified'] ?? '')
    return [{ answer, ...source, modified, from: sent.at + skew, to: at + skew }]
  })
}
/** After what a load had begun: it takes a while of the machine's time, in which the clock may have been moved. */
export const begunAt = ({ events, schedule }: Facts, { ms }: SaidByProvider): number =>
  events.findLast(event => event.ms <= ms - longestLoadRealMs)?.at ?? schedule.start
// The longest call, after one that others waited for as well.
const longestLoadRealMs = 2_500

/**
 * Whether weather may be purged by then: by a purge after its load had begun, even if the provider said it later. Of weather that was
 * said after the purge, only the first may be of a load from before.
 */
export const mayBePurged = (facts: Facts, said: SaidByProvider, seq: number): boolean =>
  facts.of('purged').some(purge => {
    if (purge.seq > said.seq) return purge.seq < seq
    const isAgain = facts.said.some(
      other =>
        other.seq > purge.seq && other.seq < said.seq && other.status === 200 && haveSamePoint(other, said),
    )
    return !isAgain && said.ms - purge.ms < longestLoadRealMs
  })
const haveSamePoint = (one: SaidByProvider, other: SaidByProvider): boolean =>
  one.points.some(point => other.points.some(each => String(each) === String(point)))

const cellOf = ({ headers }: Answer): string | undefined =>
  /key="([\d.,]+)"/.exec(headers['cache-status'] ?? '')?.[1]

export const sameLoads = (facts: Facts, loaded: readonly Loaded[], report: Parameters<Rule>[1]): void => {
  for (const all of Map.groupBy(loaded, ({ said }) => said).values()) {
    const fetchedAt = Math.max(...all.map(({ modified }) => modified))
    for (const one of all) {
      const fault = modifiedFault(facts, one, fetchedAt)
      if (fault) report.broken(one.answer, fault)
    }
    for (const ofCell of Map.groupBy(all, ({ cell }) => cell).values()) {
      oneEnd(facts, ofCell, fetchedAt, report)
      readOnce(ofCell, report)
    }
    for (const one of all) {
      const fault = firstFault(facts, one)
      if (fault) report.broken(one.answer, fault)
    }
  }
}

/** Nobody finds in memory, or anywhere, what nobody has requested before. */
const firstFault = (facts: Facts, { answer, said, cell }: Loaded): string | undefined => {
  const cached = answer.headers['cache-status'] ?? ''
  const { gateway, run, seq, sent } = answer
  if (cached.includes('fwd=miss')) return undefined
  const others = facts.answers.filter(other => other !== answer && mayConcern(other, cell))
  if (sent.seq < said.seq && !others.some(other => other.sent.seq < said.seq))
    return `${cached}, and it was loaded for this request`
  if (!cached.includes('detail=memory')) return undefined
  const start = facts.lives.find(
    life => life.what === 'started' && life.gateway === gateway && life.run === run,
  )
  const isFirst = !others.some(
    other => other.gateway === gateway && other.run === run && other.sent.seq < seq,
  )
  // A gateway that starts looks in Redis for what others were asked for, then and later.
  const isUnknown = start && start.seq < said.seq && !others.some(other => other.sent.seq < start.seq)
  return isFirst && isUnknown ? `${cached}, and it was never there` : undefined
}

/** Whether a request may be for the weather of a cell. */
const mayConcern = (answer: Answer, cell: string): boolean =>
  isOfWeather(answer.path) && (isListed(answer) || (cellOf(answer) ?? cell) === cell)

/** The instant of a load is when its request was sent, by the clock of who sent it; nobody says a later one than its own. */
const modifiedFault = (
  facts: Facts,
  { answer, said, modified, from, to }: Loaded,
  fetchedAt: number,
): string | undefined => {
  // It may have been rendered at any instant since the load.
  const isOwn =
    facts.skewSpan > 0 && modified > said.arrivedAt + facts.skewOf(answer) - second && modified <= to
  if (modified !== fetchedAt && !isOwn)
    return `last-modified ${isoOf(modified)}, and others have ${isoOf(fetchedAt)} for its load`
  const isMiss = /fwd=miss; stored/.test(answer.headers['cache-status'] ?? '')
  const skew = isMiss ? facts.skewOf(answer) : Math.max(0, ...facts.skews)
  // Of a gateway that waited for the load of another one.
  if (modified > said.arrivedAt + skew && !isOwn)
    return `last-modified ${isoOf(modified)}, and the provider was asked ${isoOf(said.arrivedAt)}`
  return isMiss && modified <= from - second
    ? `last-modified ${isoOf(modified)}, and it was requested ${isoOf(from)}`
    : undefined
}

const concernsFreshness = [
  'cache.freshness',
  'cache.freshFor',
  'cache.freshForAtMost',
  'provider.budget.perDay',
]

/** The settings that decide how long weather is fresh; undefined while they change, or where an end can move. */
const termsOf = (facts: Facts, { sent, seq }: Answer): string | undefined => {
  const [before, after] = [sent.seq, seq].map(at => {
    const settings = facts.settingsAt(at)
    return concernsFreshness.map(name => settings[name] ?? '').join()
  })
  // With runs, it is that of a run to come; with a limit for the day, later as that runs short.
  return before === after && /^age,.*,$/.test(before ?? '') ? before : undefined
}

/** What is said of the time that is left leads to the same end. */
export const oneEnd = (
  facts: Facts,
  all: readonly Loaded[],
  fetchedAt: number,
  report: Parameters<Rule>[1],
): void => {
  for (const [terms, some] of Map.groupBy(all, ({ answer }) => termsOf(facts, answer))) {
    if (terms === undefined) continue
    const usual = durationOf(terms.split(',')[1])
    const lead = Math.min(minute, usual / 10)
    let [least, most] = [fetchedAt + usual + lead, fetchedAt + second + usual * spread + lead]
    // All of them may have been read by clocks behind that of who loaded.
    if (facts.skewSpan > 0) most = Number.POSITIVE_INFINITY
    for (const { answer, said, from, to } of some) {
      const ttl = ttlOf(answer)
      if (mayEndHere(facts, answer, said, ttl)) continue
      ;[least, most] = [Math.max(least, from + ttl), Math.min(most, to + ttl + second)]
      if (least > most) {
        report.broken(answer, `ttl=${ttl / second}, which is another end than that of its load`)
        return
      }
    }
  }
}
/** With its jitter, weather is fresh for at most so many times as long. */
export const spread = 1.2

/** What a purge made stale, or the clock of another gateway has yet to reach, ends where this answer read it. */
const mayEndHere = (facts: Facts, { seq, sent, at }: Answer, said: SaidByProvider, ttl: number): boolean => {
  const mayHaveEnded = facts.skewSpan > 0 || facts.firstTrouble < seq || mayBePurged(facts, said, seq)
  return mayHaveEnded && ttl <= 0 && at + ttl + second >= sent.at
}

/** What a gateway has served once is in its memory. */
const readOnce = (all: readonly Loaded[], report: Parameters<Rule>[1]): void => {
  const placeOf = ({ answer: { gateway, run } }: Loaded): string => `${gateway}.${run}`
  for (const ofGateway of Map.groupBy(all, placeOf).values()) {
    const first = Math.min(...ofGateway.map(({ answer }) => answer.seq))
    const again = ofGateway.find(
      ({ answer }) =>
        answer.sent.seq > first &&
        /detail=(?:redis|embedded)|fwd=miss/.test(answer.headers['cache-status'] ?? ''),
    )
    if (again)
      report.broken(again.answer, `${again.answer.headers['cache-status']}, and #${first} had it in memory`)
  }
}
