// Promises 3, 4, 14 and 15: weather is what the provider said for that cell and time in one body, not older than promised, for now,
// and says no longer than it is; never older than what the gateway served before or what was purged. How a body is compared is in provider-body.ts.

import type { Answer, SaidByProvider } from '../history.ts'
import { describe, durationOf, type Facts, hour, isoOf, last, minute, second, zoneMs } from './facts.ts'
import { bodiesFor, hasSame, type SaidElement, type WeatherBody } from './provider-body.ts'
import type { Report, Rule } from './rule.ts'

type Served = { readonly answer: Answer; readonly body: WeatherBody; readonly cell: string }

const servedIn = (facts: Facts): Served[] =>
  facts.answers.flatMap(answer => {
    if (answer.status !== 200 || answer.method === 'HEAD' || !/^\/(?:weather|forecast)\//.test(answer.path))
      return []
    try {
      const body = JSON.parse(answer.body) as WeatherBody & {
        location: { latitude: number; longitude: number }
      }
      const { latitude, longitude } = body.location
      return [{ answer, body, cell: `${latitude} ${longitude}` }]
    } catch {
      // Promise 2.
      return []
    }
  })

/** What said the weather of each answer: of equal bodies the latest. */
const sourcesOf = memoised((facts: Facts): Map<Served, SaidElement | undefined> => {
  const sources = new Map<Served, SaidElement | undefined>()
  for (const served of servedIn(facts)) {
    const { latitude, longitude } = (served.body as { location: { latitude: number; longitude: number } })
      .location
    const before = bodiesFor(facts.said, latitude, longitude).filter(
      ({ said }) => said.seq < served.answer.seq,
    )
    sources.set(
      served,
      before.findLast(element => hasSame(served.body, element)),
    )
  }
  return sources
})

function memoised<Value>(compute: (facts: Facts) => Value): (facts: Facts) => Value {
  const known = new WeakMap<Facts, Value>()
  return facts => {
    const value = known.get(facts) ?? compute(facts)
    known.set(facts, value)
    return value
  }
}

/** The longest time after it was said that weather may be served, by the settings in force. */
const longestUseMs = (facts: Facts, { gateway, sent, seq }: Answer): number =>
  Math.max(
    ...[sent.seq, seq].map(at => {
      const settings = facts.settingsAt(gateway, at)
      const freshFor = durationOf(settings['cache.freshFor'])
      const most = Math.max(freshFor, durationOf(settings['cache.freshForAtMost']))
      const spread = 1.2
      return most * spread + Math.min(minute, freshFor / 10) + durationOf(settings['cache.staleFor'])
    }),
  )

// A request that waits, and the whole seconds of headers.
const allowanceMs = 10 * second

export const saidByProvider: Rule = (facts, report) => {
  for (const [{ answer }, source] of sourcesOf(facts)) {
    report.saw()
    if (!source) report.broken(answer.seq, `${describe(answer)}: the provider never said that`)
    else ageOf(facts, answer, source.said, report)
  }
}

const ageOf = (facts: Facts, answer: Answer, said: SaidByProvider, report: Report): void => {
  const age = answer.sent.at - said.at
  const most = longestUseMs(facts, answer) + facts.skewSpan + allowanceMs
  if (age > most)
    report.broken(
      answer.seq,
      `${describe(answer)}: said ${age / second} s ago, and ${most / second} s are promised`,
    )
  const modified = Date.parse(answer.headers['last-modified'] ?? '')
  // A request that was under way while the clock moved may have been sent earlier; nothing may look newer than it is.
  if (!(modified <= said.at + facts.skewSpan + allowanceMs))
    report.broken(
      answer.seq,
      `${describe(answer)}: last-modified ${isoOf(modified)}, and it was said ${isoOf(said.at)}`,
    )
}

const quarter = hour / 4
const localOf = (at: number): string => new Date(at + zoneMs).toISOString()
const floor = (at: number, step: number): number => Math.floor(at / step) * step

export const ofNow: Rule = (facts, report) => {
  for (const { answer, body } of servedIn(facts)) {
    const skew = facts.skewOf(answer)
    const [from, to] = [answer.sent.at + skew, answer.at + skew]
    const instants = [from]
    for (let at = floor(from, quarter) + quarter; at <= to; at += quarter) instants.push(at)
    report.saw()
    const wrong = sectionsOf(body).find(
      ([time, step, length]) =>
        !instants.some(at => localOf(floor(at + zoneMs, step) - zoneMs).slice(0, length) === time),
    )
    if (wrong)
      report.broken(
        answer.seq,
        `${describe(answer)}: it is for ${wrong[0]}, at ${localOf(from).slice(0, 16)}`,
      )
    const [, seconds] = /^private, max-age=(\d+)$/.exec(answer.headers['cache-control'] ?? '') ?? []
    const most = rightForMs(body, answer, [from, to])
    if (seconds === undefined || Number(seconds) * second > most)
      report.broken(
        answer.seq,
        `${describe(answer)}: cache-control is ${answer.headers['cache-control']}, and it is right for ${Math.floor(most / second)} s`,
      )
  }
}

/** How long an answer stays right at most: until its shortest section ends, or its timeline turns stale. */
const rightForMs = (body: WeatherBody, { headers }: Answer, instants: readonly number[]): number => {
  const step = body.current ? quarter : 24 * hour
  const ends = instants.map(at => floor(at + zoneMs, step) + step - zoneMs - at)
  const isOver = new Set(instants.map(at => floor(at + zoneMs, step))).size > 1
  const [, ttl] = /; ttl=(-?\d+)/.exec(headers['cache-status'] ?? '') ?? []
  const freshMs = ttl === undefined ? step : Math.max(0, Number(ttl)) * second
  return Math.min(isOver ? step : Math.max(...ends), freshMs + second)
}

const sectionsOf = ({ current, hourly, daily }: WeatherBody) =>
  [
    ...(current ? [[String(current.time), quarter, 16] as const] : []),
    ...(hourly ? [[String((hourly.time as unknown[])[0]), hour, 16] as const] : []),
    ...(daily ? [[String((daily.time as unknown[])[0]), 24 * hour, 10] as const] : []),
  ] as const

const harmsRedis = /^(?:link|store|empty|restart-store|fail-over)$/
const isInRedis = /fwd=miss|; detail=redis/

/** What a gateway reads of Redis is not older than what one had read or written there before, while Redis was whole for all. */
const sharedNeverBack: Rule = (facts, report) => {
  const { events } = facts.history
  const harm = events.find(event => event.kind === 'step' && harmsRedis.test(event.step.do))?.seq ?? last
  const newest = new Map<string, { answer: Answer; said: SaidByProvider }[]>()
  for (const [{ answer, cell }, source] of sourcesOf(facts)) {
    const from = answer.headers['cache-status'] ?? ''
    if (!source || answer.seq > harm || !isInRedis.test(from)) continue
    const before = newest.get(cell) ?? []
    const ahead = before.find(each => each.answer.seq < answer.sent.seq && each.said.seq > source.said.seq)
    if (/detail=redis/.test(from) && before.length > 0) report.saw()
    if (/detail=redis/.test(from) && ahead)
      report.broken(
        answer.seq,
        `${describe(answer)}: Redis has what was said at #${source.said.seq}, and #${ahead.answer.seq} had #${ahead.said.seq}`,
      )
    newest.set(cell, [...before, { answer, said: source.said }])
  }
}

export const neverBack: Rule = (facts, report) => {
  sharedNeverBack(facts, report)
  const newest = new Map<string, { answer: Answer; said: SaidByProvider }[]>()
  for (const [{ answer, cell }, source] of sourcesOf(facts)) {
    if (!source) continue
    const place = `${answer.gateway}.${answer.run} ${cell}`
    const before = newest.get(place) ?? []
    const ahead = before.find(
      each =>
        each.answer.seq < answer.sent.seq && each.said.at > source.said.at + facts.skewSpan + allowanceMs,
    )
    if (before.length > 0) report.saw()
    if (ahead)
      report.broken(
        answer.seq,
        `${describe(answer)}: said ${isoOf(source.said.at)}, and #${ahead.answer.seq} had ${isoOf(ahead.said.at)}`,
      )
    newest.set(place, [...before, { answer, said: source.said }])
  }
}

export const purgedIsGone: Rule = (facts, report) => {
  const purges = facts.history.events.flatMap(event => (event.kind === 'purged' && event.hard ? [event] : []))
  for (const [{ answer }, source] of sourcesOf(facts)) {
    const purge = purges.findLast(each => facts.isKnown(answer.gateway, each, answer.sent))
    if (!purge || !source) continue
    report.saw()
    if (source.said.seq < purge.seq)
      report.broken(answer.seq, `${describe(answer)}: said before the purge at #${purge.seq}`)
  }
}
