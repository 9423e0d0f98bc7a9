// The days of `/status.json`: what share of their requests was answered without a failure, and for how many minutes something was out.

import type { Answer } from '../history.ts'
import { day, type Facts, minute, second, zoneMs } from './facts.ts'
import { isStatusPage, partsOf } from './paths.ts'
import { fields, type Shape, that } from './shapes.ts'
import { keptMs, spansOf } from './status-spans.ts'

const days = 30
// Answers are counted by the day in which their gateway adds them up.
const addedUpWithinMs = 10 * second

const dayAt = (number: number): string => new Date(number * day).toISOString().slice(0, 10)

/** Of thirty days, today first; before the history nothing is known. */
export const statusDays =
  (facts: Facts, answer: Answer): Shape =>
  value => {
    if (!Array.isArray(value) || value.length !== days) return `it has not ${days} days`
    const skew = facts.skewOf(answer)
    const todays = [answer.sent.at - keptMs, answer.at].map(at => Math.floor((at + skew + zoneMs) / day))
    const first = new Date(facts.schedule.start - facts.skewSpan + zoneMs).toISOString().slice(0, 10)
    const today = todays.find(each => dayAt(each) === (value[0] as { day: string }).day)
    if (today === undefined) return `its first day is ${(value[0] as { day: string }).day}`
    for (const [i, one] of value.entries()) {
      const name = dayAt(today - i)
      const nothing = that(each => each === null, 'null')
      const minutes = name < first ? nothing : undefined
      const fault =
        fields({
          day: that(each => each === name, `day ${name}`),
          availability: name < first ? nothing : availability(facts, answer, today - i),
          outage_minutes: fields({
            weather: minutes ?? minutesOf(facts, answer, 'weather', today - i),
            quotas: minutes ?? minutesOf(facts, answer, 'quotas', today - i),
          }),
        })(one) ?? onRecord(one as OneDay)
      if (fault) return fault
    }
    return undefined
  }

type OneDay = {
  readonly day: string
  readonly availability: number | null
  readonly outage_minutes: Readonly<Record<'weather' | 'quotas', number | null>>
}

/** Minutes are known of a day with requests, or with an outage of either kind, and of no other. */
const onRecord = ({ day, availability, outage_minutes: minutes }: OneDay): string | undefined => {
  const { weather, quotas } = minutes
  if ((weather === null) !== (quotas === null)) return `${day} has one kind of outage`
  const isOnRecord = availability !== null || Number(weather) > 0 || Number(quotas) > 0
  return isOnRecord === (weather !== null) ? undefined : `${day} has ${weather} minutes and ${availability}`
}

/** The bounds of a day in the fleet, ms since the epoch. */
const boundsOf = (number: number): readonly [number, number] => [
  number * day - zoneMs,
  (number + 1) * day - zoneMs,
]

const counted = new Set([0, 200, 304, 400, 404, 405, 500])

/** The share without failures, of as many requests of the fleet as this gateway may know of. */
const availability = (facts: Facts, answer: Answer, number: number): Shape => {
  const [from, to] = boundsOf(number)
  const { gateway, run, sent, seq } = answer
  const span = facts.skewSpan
  let [least, most, failed, fails] = [0, 0, 0, 0]
  for (const each of facts.answers) {
    const isServed = counted.has(each.status) && !isStatusPage(each) && partsOf(each.path).endpoint !== 'key'
    if (!isServed || each.sent.seq > seq) continue
    if (each.sent.at - span > to || addedUpBy(facts, each) + span < from) continue
    const isFailure = each.status === 500 || each.status === 0
    most += 1
    if (isFailure) fails += 1
    // What Redis lost or could not take is not known for sure.
    const isSure =
      facts.firstTrouble > seq &&
      each.gateway === gateway &&
      each.run === run &&
      /^\/(?:weather|forecast|locations)/.test(each.path) &&
      (each.status === 200 || each.status === 500) &&
      each.sent.at - span > from &&
      addedUpBy(facts, each) + span < to &&
      each.at < sent.at - keptMs
    if (isSure) least += 1
    if (isSure && each.status === 500) failed += 1
  }
  // A gateway adds again what Redis took and did not confirm in time.
  const times = facts.firstTrouble > seq ? 1 : 2
  const isShare = (share: unknown): boolean => {
    for (let errors = failed; errors <= fails * times; errors++)
      for (let all = Math.max(1, least, errors); all <= most * times; all++)
        if (Math.floor(((all - errors) / all) * 1e5) / 1e5 === share) return true
    return false
  }
  return that(
    share => (share === null ? least === 0 : isShare(share)),
    `share of ${least} to ${most * times} with ${failed} to ${fails * times} failures`,
  )
}

const addedUpBy = ({ events }: Facts, { seq, at }: Answer): number =>
  events.find(event => event.seq > seq && event.at > at + addedUpWithinMs)?.at ?? events.at(-1)?.at ?? at

/** No day has more minutes of outage than it had since the first fault. */
const minutesOf = (facts: Facts, answer: Answer, of: 'weather' | 'quotas', number: number): Shape => {
  const [from, to] = boundsOf(number)
  const begin = Math.min(...spansOf(facts, answer, of).map(([at]) => at)) - facts.skewSpan
  const ms = Math.min(to, answer.at + facts.skewSpan) - Math.max(from, begin)
  const most = Math.ceil(Math.max(0, ms) / minute)
  return that(
    count => count === null || (Number.isInteger(count) && Number(count) >= 0 && Number(count) <= most),
    `count of at most ${most} minutes`,
  )
}
