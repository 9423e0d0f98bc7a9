// What happened in one history, in order: steps taken, requests and answers, what the provider said, the lives of gateways and
// keys. Plain data, which the checker judges without the product, and which is kept as JSON when it breaks a promise.

import type { Schedule, Settings, Step } from './steps.ts'

/**
 * When something happened: its place in the order of all events, the true instant in ms since the epoch, and the ms that the
 * machine's own time had passed since the begin, by which connections come back.
 */
export type Moment = { readonly seq: number; readonly at: number; readonly ms: number }

export type Answer = Moment & {
  readonly kind: 'answer'
  /** When the request was sent; its own moment is that of the answer. */
  readonly sent: Moment
  readonly gateway: number
  /** Which run of that gateway: 0 for the first. */
  readonly run: number
  readonly key: string
  readonly path: string
  /** GET if not given. */
  readonly method?: 'HEAD' | 'POST'
  /** Sent with the secret that the key had before its last rotation. */
  readonly former?: true
  /** The tag that was sent along. */
  readonly ifNoneMatch?: string
  /** The coding that it accepts. */
  readonly encoding?: 'gzip' | 'br'
  /** 0 for a request without an answer. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Decoded; empty for 304. */
  readonly body: string
  /** How long it was as it came. */
  readonly bytes: number
  /** The fingerprint of the certificate on the connection, where it has one. */
  readonly certificate?: string
  /** Why there was no answer. */
  readonly failure?: string
}

export type SaidByProvider = Moment & {
  readonly kind: 'provider'
  /** Its name among upstreams, where there are several. */
  readonly upstream?: string
  /** When the request came; its own moment is when it was answered. */
  readonly arrivedAt: number
  readonly points: readonly (readonly [latitude: number, longitude: number])[]
  readonly status: number | null
  readonly body: string | null
  readonly weight: number
}

/** The provider said that this run of its model is the last: when it began, ms since the epoch. */
type RunSaid = Moment & Readonly<{ kind: 'run'; initialisedAt: number }>

export type GatewayEvent = Moment & {
  readonly kind: 'gateway'
  readonly gateway: number
  readonly run: number
  readonly what: 'started' | 'stopping' | 'stopped' | 'killed' | 'not started'
  readonly skewMs: number
}

export type KeyEvent = Moment & {
  readonly kind: 'key'
  readonly key: string
  /** `unsure`: the change failed half way, so nothing is promised. */
  readonly what: 'issued' | 'revoked' | 'rotated' | 'tier' | 'unsure'
  readonly tier?: string
  /** Of an issued key. */
  readonly id?: string
  /** Until when the key, or its former secret, is valid: ms since the epoch. */
  readonly until?: number
}

type Configured = Moment &
  Readonly<{ kind: 'configured'; gateway: number; settings: Settings; outcome: string }>

/** Every gateway has a new file now: the fingerprint of a certificate, or the name of the place that is renamed. */
type Renewed = Moment & Readonly<{ kind: 'renewed'; what: 'certificate' | 'name'; value: string }>

/** The entries of all cells were purged by this gateway; `hard`: as if they had never been there. */
type Purged = Moment & Readonly<{ kind: 'purged'; gateway: number; hard: boolean }>

export type StepTaken = Moment & Readonly<{ kind: 'step'; step: Step }>

/** `end`: all faults have ended. `judged`: the promised time has passed as well. */
type Phase = Moment & Readonly<{ kind: 'phase'; phase: 'end' | 'judged' }>

type Ready = Moment & Readonly<{ kind: 'ready'; gateway: number; status: number; body: string }>

type Change = KeyEvent | Configured | Renewed | Purged
export type HistoryEvent =
  | Answer
  | SaidByProvider
  | RunSaid
  | GatewayEvent
  | Change
  | StepTaken
  | Phase
  | Ready

/** A place of the catalogue at the begin. */
export type Place = Readonly<{
  id: string
  type: string
  parentId: string | null
  name_en: string
  name_bn: string
  slug_en: string
  latitude: number
  longitude: number
  population: number
  area_sq_km: number
  website: string | null
  aliases: readonly string[]
}>

export type History = {
  readonly schedule: Schedule
  readonly places: readonly Place[]
  readonly events: readonly HistoryEvent[]
  /** The longest time that the machine let the history wait. */
  readonly stalledMs: number
  /** What gateways logged, for people: no rule reads it. Those in processes of their own are not in it. */
  readonly log?: readonly string[]
}

type Without<Event, Names extends string> = Event extends unknown ? Omit<Event, Names> : never
/** An event before its moment is known. */
export type Happened = Without<HistoryEvent, keyof Moment>

export type Recorder = {
  readonly events: HistoryEvent[]
  /** The moment of what happens now. */
  moment(): Moment
  add(event: Happened): void
}

export const createRecorder = (now: () => number): Recorder => {
  const events: HistoryEvent[] = []
  const begun = performance.now()
  let seq = 0
  const moment = (): Moment => ({ seq: ++seq, at: now(), ms: Math.round(performance.now() - begun) })
  return {
    events,
    moment,
    add: event => void events.push({ ...moment(), ...event } as HistoryEvent),
  }
}
