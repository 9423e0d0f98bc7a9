// The body of `/status.json`: instants to the minute, weather as the provider said it and as it was requested here, outages only where the
// history has faults. What is told of days is in status-days.ts.

import type { Answer } from '../history.ts'
import type { Step } from '../steps.ts'
import { type Facts, hour, isoOf, minute, second } from './facts.ts'
import { begunAt } from './loads.ts'
import { isOfWeather } from './paths.ts'
import { cellsOf } from './places.ts'
import { fields, type Shape, that } from './shapes.ts'
import { statusDays } from './status-days.ts'
import { keptMs, reachedBy, type Span, spansOf } from './status-spans.ts'
import { isWeatherOut } from './weather-outages.ts'

const demandMs = 2 * hour

export const statusBody = (facts: Facts, answer: Answer): Shape => {
  const skew = facts.skewOf(answer)
  const now: Span = [answer.sent.at + skew - keptMs, answer.at + skew]
  return fields({
    at: minuteIn([now], 'minute of now'),
    weather: weatherOf(facts, answer, now),
    outages: outagesOf(facts, answer),
    days: statusDays(facts, answer),
  })
}

const floored = (at: number): number => Math.floor(at / minute) * minute

/** The minute of an instant in one of these spans. */
const minuteIn = (spans: readonly Span[], what: string): Shape =>
  that(value => {
    const at = Date.parse(String(value))
    return (
      isoOf(at) === value && at === floored(at) && spans.some(([from, to]) => at >= floored(from) && at <= to)
    )
  }, what)

const weatherOf =
  (facts: Facts, answer: Answer, now: Span): Shape =>
  value => {
    const { median_age_seconds: median, oldest_age_seconds: oldest } = (value ?? {}) as Record<
      string,
      unknown
    >
    const shares = sharesOf(facts, answer)
    const ages = agesOf(facts, answer, now)
    const age = that(
      each => each === null || ages.some(([from, to]) => Number(each) >= from && Number(each) <= to),
      'age of what the provider said',
    )
    const inMinutes = that(each => each === null || Number.isInteger(Number(each) / 60), 'age in minutes')
    const runs = facts.of('run').flatMap(run => (run.seq < answer.seq ? isoOf(run.initialisedAt) : []))
    return (
      fields({
        fresh_share: that(
          each => shares.has(each as number | null),
          'share of the cells that were requested',
        ),
        median_age_seconds: inMinutes,
        oldest_age_seconds: inMinutes,
        model_run: that(
          each => (each === null ? !hasRun(facts, answer) : runs.includes(String(each))),
          'run that the provider had',
        ),
      })(value) ??
      [median, oldest].map(age).find(fault => fault !== undefined) ??
      ((median === null) === (oldest === null) && Number(median) <= Number(oldest)
        ? undefined
        : `the median age is ${median}, and the oldest ${oldest}`)
    )
  }

/** Whether its gateway had told of a run before, which it does not forget. A fallback may have none. */
const hasRun = ({ pages, schedule }: Facts, { gateway, run, sent }: Answer): boolean =>
  schedule.hasFallback !== true &&
  pages.some(
    each =>
      each.gateway === gateway && each.run === run && each.seq < sent.seq && /"model_run":"/.test(each.body),
  )

/** How many cells may be fresh, of those that were requested of this gateway within two hours; null for none. */
const sharesOf = (facts: Facts, answer: Answer): Set<number | null> => {
  const [surely, perhaps] = [new Set<string>(), new Set<string>()]
  const { gateway, run, sent, seq } = answer
  for (const each of facts.answers) {
    if (each.gateway !== gateway || each.run !== run || each.sent.seq > seq || !isOfWeather(each.path))
      continue
    if (each.at < sent.at - keptMs - demandMs) continue
    const isSure = each.status === 200 && each.at < sent.at - keptMs && each.sent.at > answer.at - demandMs
    for (const cell of cellsOf(facts, each)) {
      perhaps.add(cell)
      if (isSure) surely.add(cell)
    }
  }
  const shares = new Set<number | null>(surely.size === 0 ? [null] : [])
  for (let all = Math.max(1, surely.size); all <= perhaps.size; all++)
    for (let fresh = 0; fresh <= all; fresh++) shares.add(Math.floor((fresh / all) * 1e5) / 1e5)
  return shares
}

/** The ages, in whole minutes as seconds, that weather may have which the provider said before. */
const agesOf = (facts: Facts, { seq }: Answer, [from, to]: Span): Span[] =>
  facts.said.flatMap(said => {
    if (said.status !== 200 || said.arrivedAt > to + facts.skewSpan || said.seq > seq) return []
    const [least, most] = [
      from - reachedBy(facts, said).at - facts.skewSpan,
      to - begunAt(facts, said) + facts.skewSpan,
    ].map(age => floored(Math.max(0, age)) / second)
    return [[least ?? 0, most ?? 0]]
  })

const outagesOf =
  (facts: Facts, answer: Answer): Shape =>
  value => {
    if (!Array.isArray(value)) return 'it has no list of outages'
    for (const one of value) {
      const spans = spansOf(facts, answer, (one as { of: string }).of)
      const noticed = spans.map(([from, to]): Span => [from - facts.skewSpan, to + facts.skewSpan])
      const fault = fields({
        of: that(of => of === 'weather' || of === 'quotas', 'kind of outage'),
        since: minuteIn(noticed, 'minute in which a fault may have been noticed'),
      })(one)
      if (fault) return fault
    }
    const kinds = value.map(({ of }) => of)
    if (isStoreAway(facts, answer) && !kinds.includes('quotas')) return 'it lacks the outage of quotas'
    if (isWeatherOut(facts, answer) && !kinds.includes('weather')) return 'it lacks the outage of weather'
    return new Set(kinds).size < kinds.length ? `it has the outages ${kinds.join(', ')}` : undefined
  }

// A link that passes something, and a disk that is full, let a gateway have its store back in between.
const isSilent = (step: Step): boolean =>
  step.do === 'store' ? step.fault !== 'full' : step.do === 'link' && silentLinks.has(step.fault.kind)
const silentLinks: ReadonlySet<string> = new Set(['refuse', 'black-hole'])

/** Whether its gateway had told others that its store is away, before what is shown here was read. */
const isStoreAway = (facts: Facts, { gateway, run, sent, seq }: Answer): boolean =>
  facts
    .troubles(gateway)
    .some(
      ({ from, to }) =>
        to.seq > seq &&
        isSilent(from.step) &&
        facts.answers.some(
          each =>
            each.gateway === gateway &&
            each.run === run &&
            each.sent.seq > from.seq &&
            each.at < sent.at - keptMs &&
            /"store_unavailable"/.test(each.body),
        ),
    )
