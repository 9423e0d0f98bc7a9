// What the rules of the checker read out of a history: when Redis was not whole for a gateway, which settings were in force, what
// a key's limit was. The checker's own reading of the contract: nothing here is imported from the product.

import type {
  Answer,
  GatewayEvent,
  History,
  HistoryEvent,
  KeyEvent,
  Moment,
  SaidByProvider,
} from '../history.ts'
import type { Settings, Step } from '../steps.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute
export const day = 24 * hour
/** Dhaka is six hours ahead of UTC all year. */
export const zoneMs = 6 * hour

/** Redis was not whole for a gateway from one event to another. */
export type Trouble = { readonly from: Moment; readonly to: Moment }

export type Facts = {
  readonly history: History
  readonly answers: readonly Answer[]
  readonly said: readonly SaidByProvider[]
  readonly keyEvents: readonly KeyEvent[]
  readonly lives: readonly GatewayEvent[]
  /** The largest difference between two clocks of gateways, or between one and the true one, in ms. */
  readonly skewSpan: number
  skewOf(answer: Pick<Answer, 'gateway' | 'run'>): number
  /** Where counting may go other ways than through Redis, for one gateway. */
  troubles(gateway: number): readonly Trouble[]
  isTroubled(gateway: number, from: number, to: number): boolean
  /** Whether it may not have reported yet what it admitted by itself, at a moment or between two. */
  isUnsettled(gateway: number, from: Moment, to?: Moment): boolean
  /** The first event at which Redis was not whole for anybody. */
  readonly firstTrouble: number
  /** The settings in force at a gateway. */
  settingsAt(gateway: number, seq: number): Settings
  /** The last moment of a kind of phase; the end of all where it did not come. */
  phase(name: 'end' | 'judged'): number
  /** The moment from which on a change of keys must be known to a gateway: see `knownAfter`. */
  isKnown(gateway: number, change: Moment, sent: Moment): boolean
}

export const last = Number.MAX_SAFE_INTEGER
// Polls come each half second, and what an outage held up comes back by the machine's time.
const knownAfterMs = 3 * second
const knownAfterRealMs = 60
const backAfterMs = 10 * second
export const backAfterRealMs = 2_500

/** Whether a gateway need not be back yet. */
export const isSoonAfter = ({ to }: Trouble, { at, ms }: Moment): boolean =>
  at - to.at < backAfterMs || ms - to.ms < backAfterRealMs

const concernsAllAtOnce: readonly Step['do'][] = ['empty', 'restart-store', 'drop-messages', 'fail-over']

export const factsOf = (history: History): Facts => {
  const { events, schedule } = history
  const of = <Kind extends HistoryEvent['kind']>(kind: Kind) =>
    events.filter((event): event is Extract<HistoryEvent, { kind: Kind }> => event.kind === kind)
  const answers = of('answer')
  const lives = of('gateway')
  const steps = of('step')
  const end: Moment = { seq: last, at: last, ms: last }

  const all = troublesOf(history)
  const troubles = (gateway: number): readonly Trouble[] => all.get(gateway) ?? []
  const skews = [0, ...lives.map(({ skewMs }) => skewMs)]
  const configured = of('configured').filter(({ outcome }) => outcome === 'applied')

  return {
    history,
    answers,
    said: of('provider'),
    keyEvents: of('key'),
    lives,
    skewSpan: Math.max(...skews) - Math.min(...skews),
    skewOf: ({ gateway, run }) =>
      lives.find(life => life.gateway === gateway && life.run === run)?.skewMs ??
      schedule.skews[gateway] ??
      0,
    troubles,
    isTroubled: (gateway, from, to) =>
      troubles(gateway).some(trouble => trouble.from.seq <= to && from <= trouble.to.seq),
    isUnsettled: (gateway, from, to = from) =>
      troubles(gateway).some(trouble => trouble.from.seq <= to.seq && isSoonAfter(trouble, from)),
    firstTrouble: Math.min(last, ...[...all.values()].flat().map(({ from }) => from.seq)),
    settingsAt: (_gateway, seq) =>
      configured
        .filter(event => event.seq <= seq)
        .reduce((settings, event) => Object.assign(settings, event.settings), { ...schedule.settings }),
    phase: name => of('phase').find(({ phase }) => phase === name)?.seq ?? last,
    isKnown: (gateway, change, sent) => {
      if (sent.at - change.at < knownAfterMs || sent.ms - change.ms < knownAfterRealMs) return false
      return troubles(gateway).every(
        ({ from, to }) =>
          (to.seq < change.seq - 1 &&
            change.at - to.at > backAfterMs &&
            change.ms - to.ms > backAfterRealMs) ||
          (sent.at - to.at > backAfterMs && sent.ms - to.ms > backAfterRealMs) ||
          from.seq > sent.seq,
      )
    },
  }

  function troublesOf({ schedule: { skews: gateways } }: History): Map<number, Trouble[]> {
    const found = new Map<number, Trouble[]>(gateways.map((_, gateway) => [gateway, []]))
    const note = (concerned: readonly number[], from: Moment, to: Moment): void => {
      for (const gateway of concerned) found.get(gateway)?.push({ from, to })
    }
    const everybody = gateways.map((_, gateway) => gateway)
    steps.forEach((taken, i) => {
      const { step } = taken
      // What happens at once is over with the next step.
      const next: Moment = steps[i + 1] ?? of('phase')[0] ?? end
      if (concernsAllAtOnce.includes(step.do)) note(everybody, taken, next)
      // To a process that stood still, replies of Redis come too late.
      if (step.do === 'suspend') note([step.gateway], taken, next)
      // Where a disk is full, counting goes on in what is reserved for it.
      if (schedule.store === 'embedded' || (step.do !== 'link' && step.do !== 'store')) return
      const healed: Moment =
        steps.find(other => other.step.do === 'heal' && other.step.id === step.id) ??
        of('phase').find(({ phase }) => phase === 'end') ??
        end
      note(step.do === 'link' ? step.gateways : everybody, taken, healed)
    })
    return found
  }
}

/** 401, 429, and a key or quota that could not be checked, take nothing. */
export const isAdmitted = (answer: Answer): boolean =>
  answer.status !== 0 && answer.status !== 401 && answer.status !== 429 && !isUnchecked(answer)

/** Whether the key or its quota may not have been checked; an answer to HEAD does not say why it failed. */
export const isUnchecked = ({ status, body, method }: Answer): boolean =>
  status === 500 && (method === 'HEAD' || unchecked.test(body))
const unchecked = /"code":"(?:store_unavailable|tier_not_configured)"/

/** May have been counted, although nobody saw it: no answer, or none from the store. */
export const isUnsure = (answer: Answer): boolean => answer.status === 0 || isUnchecked(answer)

export const headerOf = (answer: Answer, name: string): number =>
  Number(answer.headers[`x-ratelimit-${name}`])

export const durationOf = (text: string | undefined): number => {
  const [, number, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text ?? '') ?? []
  const units: Record<string, number> = { ms: 1, s: second, m: minute, h: hour, d: day }
  return Number(number) * (units[unit ?? ''] ?? Number.NaN)
}

export const isoOf = (at: number): string => (at > 8e15 ? 'the end' : new Date(at).toISOString())

export const describe = (answer: Answer): string =>
  `#${answer.seq} ${answer.key} ${answer.path} at gateway ${answer.gateway}.${answer.run}, ${isoOf(answer.at)}: ${answer.status}`
