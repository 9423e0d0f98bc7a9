// What the rules of the checker read out of a history: when Redis was not whole for a gateway, which settings were in force, what
// a key's limit was. The checker's own reading of the contract: nothing here is imported from the product.

import type { Answer, History, HistoryEvent, Moment, StepTaken } from '../history.ts'
import type { Settings, Step } from '../steps.ts'
import { isListed, isStatusPage, partsOf } from './paths.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute
export const day = 24 * hour
/** Dhaka is six hours ahead of UTC all year. */
export const zoneMs = 6 * hour

/** Redis was not whole for a gateway from a step to another event. */
export type Trouble = { readonly from: StepTaken; readonly to: Moment }

export const last = Number.MAX_SAFE_INTEGER
// Polls come each half second, and what an outage held up comes back by the machine's time.
const knownAfterMs = 3 * second
export const knownAfterRealMs = 60
export const backAfterMs = 10 * second
export const backAfterRealMs = 2_500

/** Whether a gateway need not be back yet. */
export const isSoonAfter = ({ to }: Trouble, { at, ms }: Moment): boolean =>
  at - to.at < backAfterMs || ms - to.ms < backAfterRealMs

const concernsAllAtOnce: readonly Step['do'][] = ['empty', 'restart-store', 'drop-messages', 'fail-over']

export type Facts = ReturnType<typeof factsOf>

export const factsOf = ({ events, schedule, places, stalledMs }: History) => {
  const byKind = Map.groupBy(events, ({ kind }) => kind)
  const of = <Kind extends HistoryEvent['kind']>(kind: Kind) =>
    // The filter is there for the type.
    (byKind.get(kind) ?? []).filter(
      (event): event is Extract<HistoryEvent, { kind: Kind }> => event.kind === kind,
    )
  const [lives, steps, phases] = [of('gateway'), of('step'), of('phase')]
  const [answers, pages] = [false, true].map(isPage =>
    of('answer').filter(answer => isStatusPage(answer) === isPage),
  ) as [Answer[], Answer[]]
  /** Settings that came into force. */
  const configured = of('configured').filter(({ outcome }) => outcome === 'applied')
  const skews = [0, ...lives.map(({ skewMs }) => skewMs)]
  const end: Moment = { seq: last, at: last, ms: last }
  /** A 304 that takes nothing, although its units may be taken for a moment. */
  const isFree = ({ status }: Answer): boolean =>
    status === 304 && schedule.settings['quota.notModifiedCost'] === '0'

  const found = schedule.skews.map((): Trouble[] => [])
  const everybody = [...found.keys()]
  steps.forEach((from, i) => {
    const { step } = from
    const note = (concerned: readonly number[], to: Moment): void => {
      for (const gateway of concerned) found[gateway]?.push({ from, to })
    }
    // What happens at once is over with the next step.
    const next: Moment = steps[i + 1] ?? phases[0] ?? end
    if (concernsAllAtOnce.includes(step.do)) note(everybody, next)
    if (step.do === 'link' && step.fault.kind === 'reset') note(step.gateways, next)
    // To a process that stood still, replies of Redis come too late.
    if (step.do === 'suspend') note([step.gateway], next)
    if ((step.do !== 'link' || step.fault.kind === 'reset') && step.do !== 'store') return
    const healed =
      steps.find(other => other.step.do === 'heal' && other.step.id === step.id) ??
      phases.find(({ phase }) => phase === 'end')
    note(step.do === 'link' ? step.gateways : everybody, healed ?? end)
  })
  /** Where counting may go other ways than through Redis, for one gateway. */
  const troubles = (gateway: number): readonly Trouble[] => found[gateway] ?? []

  return {
    ...{ schedule, places, events, stalledMs, of, answers, lives, steps, configured, troubles },
    /** Answers of the status page, which belong to no key. */
    pages,
    isFree,
    /** Whether it takes units of the day. */
    isCounted: (answer: Answer): boolean => isAdmitted(answer) && !isFree(answer),
    /** Whether its key is bound to other endpoints. */
    isBeyondBounds: (answer: Answer): boolean => {
      const endpoint = endpointOf(answer)
      return endpoint !== undefined && schedule.bound?.[answer.key]?.includes(endpoint) === false
    },
    said: of('provider'),
    keyEvents: of('key'),
    skews,
    /** The largest difference between two clocks of gateways, or between one and the true one, in ms. */
    skewSpan: Math.max(...skews) - Math.min(...skews),
    skewOf: ({ gateway, run }: Answer): number =>
      // A start that failed may have been tried again with another clock.
      lives.find(life => life.what !== 'not started' && life.gateway === gateway && life.run === run)
        ?.skewMs ??
      schedule.skews[gateway] ??
      0,
    isTroubled: (gateway: number, from: number, to: number): boolean =>
      troubles(gateway).some(trouble => trouble.from.seq <= to && from <= trouble.to.seq),
    /** Whether it may not have reported yet what it admitted by itself, at a moment or between two. */
    isUnsettled: (gateway: number, from: Moment, to = from): boolean =>
      troubles(gateway).some(trouble => trouble.from.seq <= to.seq && isSoonAfter(trouble, from)),
    /** The first event at which Redis was not whole for anybody. */
    firstTrouble: Math.min(last, ...found.flat().map(({ from }) => from.seq)),
    settingsAt: (seq: number): Settings => {
      const until = configured.filter(event => event.seq <= seq)
      return Object.assign({}, schedule.settings, ...until.map(({ settings }) => settings))
    },
    /** From when on the promised time has passed; the end of all where it did not. */
    judgedFrom: phases.find(({ phase }) => phase === 'judged')?.seq ?? last,
    /** Whether a gateway must know of a change of keys when a request is sent. */
    isKnown: (gateway: number, change: Moment, sent: Moment): boolean => {
      const realMs = knownAfterRealMs + stalledMs
      if (sent.at - change.at < knownAfterMs || sent.ms - change.ms < realMs) return false
      const isLongAfter = (to: Moment, { at, ms }: Moment): boolean =>
        at - to.at > backAfterMs && ms - to.ms > backAfterRealMs
      return troubles(gateway).every(
        ({ from, to }) =>
          (to.seq < change.seq - 1 && isLongAfter(to, change)) ||
          isLongAfter(to, sent) ||
          from.seq > sent.seq,
      )
    },
  }
}

/** 401, 403, 429, and a key or quota that could not be checked, are not admitted. */
export const isAdmitted = (answer: Answer): boolean => !untaken.has(answer.status) && !isUnchecked(answer)
const untaken = new Set([0, 401, 403, 429])

/** The endpoint that a key may be bound to; undefined for what is none, which any key is told. */
export const endpointOf = ({ path, method }: Pick<Answer, 'path' | 'method'>): string | undefined => {
  const [endpoint = '', type] = path.split('?')[0]?.slice(1).split('/') ?? []
  if (method === 'POST') return undefined
  if (isListed({ path })) return `${endpoint}_places`
  if (endpoint === 'locations') return type === undefined ? 'locations' : 'location'
  if (endpoint === 'weather' && type === 'coords') return 'coords'
  return endpoint === 'weather' || endpoint === 'forecast' ? endpoint : undefined
}

/** Whether the key or its quota may not have been checked; an answer to HEAD does not say why it failed. */
export const isUnchecked = ({ status, body, method }: Answer): boolean =>
  status === 500 && (method === 'HEAD' || unchecked.test(body))
const unchecked = /"code":"(?:store_unavailable|tier_not_configured)"/

/** May have been counted, although nobody saw it: no answer, or none from the store. */
export const isUnsure = (answer: Answer): boolean => answer.status === 0 || isUnchecked(answer)

/** The requests for one place that a list stands for, in its order; of another path that path alone. */
export const singlePathsOf = ({ path, method }: Pick<Answer, 'path' | 'method'>): string[] => {
  if (!isListed({ path, ...(method && { method }) })) return [path]
  const [endpoint = '', query = ''] = path.split('?', 2)
  const parameters = new URLSearchParams(query)
  const places = new Set(parameters.get('places')?.split(','))
  parameters.delete('places')
  return [...places].map(place => `${endpoint}/${place}${parameters.size > 0 ? `?${parameters}` : ''}`)
}

/** The units that a request takes. */
export const costOf = (answer: Pick<Answer, 'path' | 'method'>): number =>
  partsOf(answer.path).endpoint === 'key' && answer.method !== 'POST' ? 0 : singlePathsOf(answer).length

export const unitsOf = (answers: readonly Answer[]): number =>
  answers.reduce((sum, answer) => sum + costOf(answer), 0)

export const headerOf = ({ headers }: Answer, name: 'limit' | 'remaining' | 'reset'): number =>
  Number(headers[`x-ratelimit-${name}`])

/** How long the weather of an answer is still fresh, in ms; NaN where it does not say. */
export const ttlOf = ({ headers }: Answer): number =>
  Number(/; ttl=(-?\d+)/.exec(headers['cache-status'] ?? '')?.[1]) * second

export const durationOf = (text: string | undefined): number => {
  const [, number, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text ?? '') ?? []
  const units: Record<string, number> = { ms: 1, s: second, m: minute, h: hour, d: day }
  return Number(number) * (units[unit ?? ''] ?? Number.NaN)
}

export const isoOf = (at: number): string => (at <= 8e15 ? new Date(at).toISOString() : 'the end')

export const describe = (answer: Answer): string =>
  `#${answer.seq} ${answer.key} ${answer.path} at gateway ${answer.gateway}.${answer.run}, ${isoOf(answer.at)}: ${answer.status}`
