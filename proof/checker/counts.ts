// Promises 6 to 9: what a key is admitted, what its counts say meanwhile and afterwards, and when its day ends. What may be
// lost is what no instance could report any more: units of one that died in an outage, or before counts were removed.

import type { Answer } from '../history.ts'
import {
  backAfterRealMs,
  costOf,
  day,
  type Facts,
  headerOf,
  isoOf,
  isSoonAfter,
  isUnsure,
  last,
  second,
  type Trouble,
  unitsOf,
  zoneMs,
} from './facts.ts'
import { isPaced } from './pace.ts'
import { isListed, partsOf } from './paths.ts'
import { quotaSpans } from './quota-clock.ts'
import type { Rule } from './rule.ts'

/** How long a gateway that has Redis again leaves room for what others have yet to report. */
const reconcilesForMs = 2 * second

type KeyDay = { readonly key: string; readonly reset: number; readonly answers: readonly Answer[] }

/** The answers to a key by the end of its day. */
const daysOf = ({ answers }: Facts): KeyDay[] => {
  const counted = answers.filter(({ status }) => status !== 0 && status !== 401)
  const days = Map.groupBy(counted, answer => `${answer.key} ${headerOf(answer, 'reset')}`)
  return [...days].map(([name, of]) => {
    const [key = '', reset] = name.split(' ')
    return { key, reset: Number(reset), answers: of }
  })
}

/** Units of requests without an answer, of which nobody knows the day. */
const unansweredOf = ({ answers }: Facts, key: string): number =>
  unitsOf(answers.filter(answer => answer.key === key && answer.status === 0))

/** Every limit that a key ever had. */
export const limitsOf = ({ schedule, configured, keyEvents }: Facts, key: string): number[] => {
  const tiers = keyEvents.filter(event => event.key === key).flatMap(({ tier }) => tier ?? [])
  return [schedule.settings, ...configured.map(({ settings }) => settings)].flatMap(each =>
    tiers.flatMap(tier => each[`quota.tiers.${tier}`] ?? []).map(Number),
  )
}

/** Where Redis lost its counts. */
const emptiesOf = ({ steps }: Facts) => steps.filter(({ step }) => step.do === 'empty')

/**
 * The units of admitted requests whose count Redis lost and may lack for a while: their gateway was cut off from it before it need have
 * reported them again, or others need not wait for that any more.
 */
const missingOf = (facts: Facts, admitted: readonly Answer[]): number => {
  const empties = new Set(emptiesOf(facts).map(({ seq }) => seq))
  const missing = admitted.filter(answer => {
    const troubles = facts.troubles(answer.gateway)
    const isElsewhere = ({ gateway }: Answer): boolean => gateway !== answer.gateway
    return troubles.some(emptied => {
      const { seq } = emptied.from
      if (!empties.has(seq) || answer.seq > seq) return false
      const isCutOff = ({ from }: Trouble): boolean =>
        from.seq > seq &&
        isSoonAfter(emptied, from) &&
        admitted.some(other => isElsewhere(other) && other.seq > from.seq)
      return troubles.some(isCutOff) || isOutrun(facts, answer, emptied, isElsewhere)
    })
  })
  return unitsOf(missing)
}

/** The units of admitted requests whose count may be gone for good. */
const lostOf = (facts: Facts, admitted: readonly Answer[]): number => {
  const ends = facts.lives.filter(({ what }) => what === 'killed' || what === 'stopped')
  const empties = emptiesOf(facts)
  const lost = admitted.filter(answer => {
    const ended = ends.find(({ gateway, run }) => gateway === answer.gateway && run === answer.run)
    if (!ended) return false
    return facts.isUnsettled(answer.gateway, ended) || empties.some(({ seq }) => ended.seq < seq)
  })
  return unitsOf(lost)
}

/**
 * Units that may be granted twice: a gateway admitted by itself while others had Redis, or it began and counted in a Redis to which
 * others had yet to report, or its way back to Redis took it longer than the others waited for it.
 */
const apartOf = (facts: Facts, admitted: readonly Answer[]): number => {
  const apart = admitted.filter(answer => {
    const { gateway, run, sent, seq } = answer
    const isOwnAway = facts.isUnsettled(gateway, sent, answer)
    const troublesBefore = (one: number): number =>
      facts.troubles(one).filter(({ from }) => from.seq < seq).length
    const start = facts.lives.find(
      life => life.gateway === gateway && life.run === run && life.what === 'started',
    )
    return [...facts.schedule.skews.keys()].some(other => {
      if (other === gateway) return false
      const isNewcomer =
        facts.isUnsettled(other, sent, answer) &&
        start !== undefined &&
        facts.troubles(other).some(({ from }) => from.seq < start.seq)
      if (isNewcomer || !isOwnAway) return isNewcomer
      const isLateBack = facts
        .troubles(gateway)
        .some(
          trouble =>
            trouble.from.seq < seq && isOutrun(facts, answer, trouble, each => each.gateway === other),
        )
      return (
        isLateBack ||
        // Redis was ever whole for one of the two only, until then.
        (!facts.isTroubled(other, sent.seq, seq) && troublesBefore(gateway) !== troublesBefore(other))
      )
    })
  })
  return unitsOf(apart)
}

/**
 * Whether another gateway admitted again when it need not wait any more for the one that admitted this, while that may still have been
 * connecting: connections take the machine's time, which is short where the clock is moved.
 */
const isOutrun = (
  facts: Facts,
  admitted: Answer,
  { to }: Trouble,
  isOther: (answer: Answer) => boolean,
): boolean =>
  facts.answers.some(
    answer =>
      isOther(answer) &&
      answer.key === admitted.key &&
      headerOf(answer, 'reset') === headerOf(admitted, 'reset') &&
      facts.isCounted(answer) &&
      answer.seq > to.seq &&
      answer.at - to.at > reconcilesForMs &&
      answer.ms - to.ms < backAfterRealMs,
  )

export const withinLimit: Rule = (facts, report) => {
  for (const { key, reset, answers } of daysOf(facts)) {
    const admitted = answers.filter(facts.isCounted)
    const limit = Math.max(0, ...limitsOf(facts, key))
    if (admitted.length === 0 || limit === 0) continue
    if (answers.some(answer => answer.status === 429 && !isPaced(answer))) report.saw()
    const allowed = limit + lostOf(facts, admitted) + missingOf(facts, admitted) + apartOf(facts, admitted)
    const taken = unitsOf(admitted)
    if (taken > allowed)
      report.broken(
        { seq: admitted.at(-1)?.seq ?? 0 },
        `${key} was admitted with ${taken} units until ${isoOf(reset * second)}; its limit is ${limit}, and ${allowed} were allowed`,
      )
  }
}

export const exactWhileServing: Rule = (facts, report) => {
  const until = facts.firstTrouble
  const changes = [
    ...facts.keyEvents.filter(({ what }) => what === 'tier' || what === 'unsure'),
    ...facts.of('configured'),
  ]
  const firstChange = Math.min(last, ...changes.map(({ seq }) => seq))
  for (const { key, answers } of daysOf(facts)) {
    const quiet = answers.filter(({ seq, sent }) => seq < until && sent.seq < Math.min(until, firstChange))
    const admitted = quiet.filter(facts.isCounted)
    const given = unitsOf(quiet.filter(facts.isFree))
    const unsure = unansweredOf(facts, key) + unitsOf(quiet.filter(isUnsure)) + given
    if (admitted.length > 1) report.saw()
    const counts = new Map<number, Answer>()
    // A unit that was given back is taken again.
    let twins = 0
    for (const answer of admitted) {
      const used = headerOf(answer, 'limit') - headerOf(answer, 'remaining')
      for (let unit = used - costOf(answer) + 1; unit <= used; unit++) {
        const twin = counts.get(unit)
        if (twin) twins += 1
        if (twin && twins > given) report.broken(answer, `unit ${unit} was given to #${twin.seq} too`)
        counts.set(unit, answer)
      }
    }
    const most = Math.max(0, ...counts.keys())
    if (most > unitsOf(admitted) + unsure)
      report.broken(
        { seq: counts.get(most)?.seq ?? 0 },
        `${key}: ${most} units are taken for the ${unitsOf(admitted)} of admitted requests`,
      )
    for (const answer of quiet.filter(each => each.status === 429 && !isPaced(each))) {
      const before = unitsOf(answers.filter(each => facts.isCounted(each) && each.sent.seq < answer.seq))
      if (before + unsure + costOf(answer) <= headerOf(answer, 'limit'))
        report.broken(answer, `it comes after ${before} of ${headerOf(answer, 'limit')}`)
    }
    for (const answer of quiet.filter(takesNothing)) {
      const used = headerOf(answer, 'limit') - headerOf(answer, 'remaining')
      // Others say what their gateway last knew.
      const isExact = partsOf(answer.path).endpoint === 'key'
      const before = isExact ? unitsOf(admitted.filter(({ seq }) => seq < answer.sent.seq)) : 0
      const until = unitsOf(answers.filter(each => facts.isCounted(each) && each.sent.seq < answer.seq))
      if (used < Math.min(headerOf(answer, 'limit'), before) || used > until + unsure)
        report.broken(answer, `it has ${used} units, and ${before} to ${until + unsure} were taken`)
    }
    exhausted(facts, key, answers, report)
  }
}

const takesNothing = (answer: Answer): boolean =>
  answer.status === 403 || isPaced(answer) || partsOf(answer.path).endpoint === 'key'

/** In an outage, too, what comes at the limit comes only there: whoever can't know says so with another error. */
const exhausted = (
  facts: Facts,
  key: string,
  answers: readonly Answer[],
  report: Parameters<Rule>[1],
): void => {
  for (const answer of answers.filter(each => each.status === 429 && !isPaced(each))) {
    const [limit, remaining] = [headerOf(answer, 'limit'), headerOf(answer, 'remaining')]
    const taken = answers.filter(
      ({ sent, status }) => sent.seq < answer.seq && status !== 403 && status !== 429,
    )
    // Units that Redis took and did not confirm may be counted twice until they are reported.
    const twice = taken.filter(({ gateway, sent, seq }) => facts.isTroubled(gateway, sent.seq, seq))
    const most = unitsOf(taken) + unitsOf(twice) + unansweredOf(facts, key)
    if (most + costOf(answer) <= limit) report.broken(answer, `it comes after ${most} of ${limit}`)
    if (!isListed(answer) && remaining > 0) report.broken(answer, `it comes with ${remaining} left`)
  }
}

/** Whether its gateway died, which may leave units taken that it was about to give back. */
const isKilled = ({ lives }: Facts, { gateway, run }: Answer): boolean =>
  lives.some(life => life.what === 'killed' && life.gateway === gateway && life.run === run)

export const exactAfterwards: Rule = (facts, report) => {
  for (const { key, answers } of daysOf(facts)) {
    if (facts.keyEvents.some(event => event.key === key && event.what === 'unsure')) continue
    const final = answers
      .filter(({ sent, path }) => sent.seq > facts.judgedFrom && path.startsWith('/locations?'))
      // What is left, as its gateway last knew.
      .filter(answer => !isPaced(answer))
      .toSorted((a, b) => a.sent.seq - b.sent.seq)
    const [first] = final
    if (!first || !final.every(({ status }) => status === 200 || status === 429)) continue
    report.saw()
    const before = answers.filter(answer => answer.sent.seq < first.sent.seq)
    const admitted = before.filter(facts.isCounted)
    const kept = unitsOf(before.filter(answer => facts.isFree(answer) && isKilled(facts, answer)))
    const most = unitsOf(admitted) + unitsOf(before.filter(isUnsure)) + unansweredOf(facts, key) + kept
    const least = unitsOf(admitted) - lostOf(facts, admitted)
    const limit = headerOf(first, 'limit')
    let used = limit - headerOf(first, 'remaining') - (first.status === 200 ? 1 : 0)
    if (used > most || (used < least && used < limit))
      report.broken(
        first,
        `${used} are counted, and ${least === most ? most : `${least} to ${most}`} were admitted`,
      )
    for (const answer of final.slice(1)) {
      const next = limit - headerOf(answer, 'remaining') - (answer.status === 200 ? 1 : 0)
      const right = Math.min(limit, used + 1)
      if (next !== right) report.broken(answer, `it has ${next} counted, and ${right} is right`)
      used = next
    }
  }
}

export const resetAtMidnight: Rule = (facts, report) => {
  const midnightAfter = (at: number): number => (Math.floor((at + zoneMs) / day) + 1) * day - zoneMs
  for (const answer of [...facts.answers, ...facts.pages]) {
    if (answer.status === 0) continue
    report.saw()
    const reset = headerOf(answer, 'reset') * second
    const instants = quotaSpans(facts, answer).flat()
    if (!instants.some(at => midnightAfter(at) === reset))
      report.broken(answer, `the day ends at ${isoOf(reset)}`)
  }
}
