// Why a key was refused at a minute, from its record and a gateway's log: answers by status, events and outages.

import { type Calendar, isoOf, localInstant, minuteMs, parseInstant, utcDayMs } from '../common/calendar.ts'
import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { KeyRecord, Subscriber } from '../stores/store.ts'

/** A minute, or a second where one is given, up to `end`; and a minute more on either side. Ms since the epoch. */
export type Moment = {
  readonly at: number
  readonly end: number
  readonly from: number
  readonly until: number
}

/** The last such time of day, a local time, or an instant. @throws InputError for other text or a future time */
export const momentIn = (given: string, calendar: Calendar, now: number): Moment => {
  const text = given.trim().replace(' ', 'T')
  const [, time, seconds = ''] = /^(\d\d:\d\d(:\d\d)?)$/.exec(text) ?? []
  const onDay = (instant: number) => localInstant(`${calendar.dayOf(instant)}T${time}`, calendar.zone)
  const ofToday = onDay(now)
  const at = time
    ? ofToday > now
      ? onDay(now - utcDayMs)
      : ofToday
    : /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text)
      ? localInstant(text, calendar.zone)
      : /T.*(?:Z|[+-]\d\d:\d\d)$/.test(text)
        ? parseInstant(text)
        : Number.NaN
  if (Number.isNaN(at))
    throw new InputError(
      `at must be a time in ${calendar.zone} such as 14:05 or 2026-11-26T14:05, or an instant such as 2026-11-26T08:05:00Z, got ${quoted(given)}`,
    )
  if (at > now) throw new InputError(`at must be in the past, got ${quoted(given)}`)
  const lengthMs = seconds !== '' || /:\d\d:\d\d/.test(text) ? 1_000 : minuteMs
  const end = at + lengthMs
  return { at, end, from: at - minuteMs, until: end + minuteMs }
}

export type KeyAt = {
  readonly state:
    | 'valid'
    | 'not created'
    | 'revoked'
    | 'subscriber revoked'
    | 'subscriber missing'
    | 'expired'
  /** Since when it was not valid; null for a valid key or an unknown time. */
  readonly since: string | null
  /** When each replaced secret of this key stopped working. */
  readonly replacedAt: readonly string[]
}

/** At the end of the minute, by what the records have now: a revocation that was lifted is not kept. In the order of refusals. */
export const keyAt = (
  { createdAt, revokedAt, expiresAt, previousHashes }: KeyRecord,
  subscriber: Subscriber | undefined,
  { end }: Moment,
): KeyAt => {
  const isPast = (instant: number | null | undefined): instant is number =>
    typeof instant === 'number' && instant < end
  const replacedAt = previousHashes.flatMap(({ validUntil }) =>
    isPast(validUntil) ? [isoOf(validUntil)] : [],
  )
  const since = (state: KeyAt['state'], instant: number | null): KeyAt => ({
    state,
    since: instant === null ? null : isoOf(instant),
    replacedAt,
  })
  if (createdAt >= end) return since('not created', null)
  if (isPast(revokedAt)) return since('revoked', revokedAt)
  if (!subscriber) return since('subscriber missing', null)
  if (isPast(subscriber.revokedAt)) return since('subscriber revoked', subscriber.revokedAt)
  return isPast(expiresAt) ? since('expired', expiresAt) : since('valid', null)
}

/** Responses to the key in one minute that are alike; `url` is that of the first. */
export type LoggedAnswers = {
  readonly minute: string
  readonly status: number
  readonly reason: string | null
  readonly tier: string | null
  readonly url: string
  readonly firstAt: string
  lastAt: string
  count: number
}

export type LogReport = {
  /** The times of its first line and of its last; null where it has none. */
  readonly firstAt: string | null
  readonly lastAt: string | null
  /** Whether it has requests at all (`log.access`), and the share of those below 500. */
  readonly hasRequests: boolean
  readonly share: number
  readonly answers: readonly LoggedAnswers[]
  /** Requests without a known key in these minutes, by the reason of their 401: the key may be among them, mistyped. */
  readonly withoutKey: Readonly<Record<string, number>>
  /** Other lines of the key on that day, up to these minutes. */
  readonly events: readonly { readonly at: string; readonly what: string }[]
  /** Those that were on in these minutes; `until` is null where the log has no end of it. */
  readonly outages: readonly LoggedOutage[]
  /** The daily limit of the key in the last line of that day that has it, up to these minutes; null where none has. */
  readonly limit: number | null
}

type LoggedOutage = {
  readonly outage: string
  readonly from: string
  readonly until: string | null
  readonly code: string | null
}

type Fields = Readonly<Record<string, unknown>>

// A log can hold anything.
const maxRows = 200
const ofProcess = ['"msg":"stopped"', '"msg":"listening"']
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value.slice(0, 200) : null)
const timeOf = (value: unknown): number => Date.parse(String(value))

/** The outages of a moment, from their log lines. */
const createOutageTally = (moment: Moment) => {
  /** By process and outage, with the time of the last line of it. */
  const begun = new Map<string, { readonly process: unknown; readonly row: LoggedOutage; lastAt: number }>()
  const ended: LoggedOutage[] = []
  const read = (fields: Fields): void => {
    const at = timeOf(fields.time)
    const outage = textOf(fields.outage) ?? ''
    const name = `${outage} ${fields.process}`
    const lastedMs = typeof fields.seconds === 'number' ? fields.seconds * 1000 : 0
    const code = textOf(fields.code)
    const from = textOf(fields.since) ?? isoOf(at - lastedMs)
    const row = begun.get(name)?.row ?? { outage, from, until: null, code }
    // Logs of 1.1 say `outage is over`.
    if (/outage (?:ended|is over)$/.test(String(fields.msg))) {
      begun.delete(name)
      addIfOn({ ...row, until: isoOf(at) }, at)
    } else if (begun.size < maxRows) begun.set(name, { process: fields.process, row, lastAt: at })
  }
  const addIfOn = (row: LoggedOutage, lastAt: number): void => {
    if (lastAt >= moment.from && timeOf(row.from) < moment.until && ended.length < maxRows) ended.push(row)
  }
  // No line tells the end of an outage that outlived its process; until then there was a line each minute.
  const endProcess = ({ time, process, msg }: Fields): void => {
    for (const [name, each] of begun)
      if (each.process === process) {
        begun.delete(name)
        addIfOn(each.row, msg === 'stopped' ? timeOf(time) : each.lastAt + minuteMs)
      }
  }
  /** Outages without an end in the log. */
  const close = (): LoggedOutage[] => {
    for (const { row, lastAt } of begun.values()) addIfOn(row, lastAt + minuteMs)
    begun.clear()
    return ended
  }
  return { read, endProcess, close }
}

/** Reads the lines of one log, in order. */
export const createLogTally = (keyId: string, moment: Moment, calendar: Calendar) => {
  const answers = new Map<string, LoggedAnswers>()
  const withoutKey: Record<string, number> = {}
  const events: { at: string; what: string }[] = []
  const outages = createOutageTally(moment)
  let limit: number | null = null
  const seen = { first: '', last: '', hasRequests: false, share: 1 }
  const isWithin = (at: number): boolean => at >= moment.from && at < moment.until

  const answered = (fields: Fields, isOfKey: boolean): void => {
    const at = timeOf(fields.arrivedAt ?? fields.time)
    if (!isWithin(at)) return
    const [status, reason] = [Number(fields.status), textOf(fields.reason)]
    if (!isOfKey) {
      const name = reason ?? 'unknown'
      if (name in withoutKey || Object.keys(withoutKey).length < maxRows)
        withoutKey[name] = (withoutKey[name] ?? 0) + 1
      return
    }
    const minute = isoOf(Math.floor(at / minuteMs) * minuteMs)
    const alike = `${minute} ${status} ${reason}`
    const before = answers.get(alike)
    if (before) {
      before.count += 1
      before.lastAt = isoOf(at)
    } else if (answers.size < maxRows) {
      const [firstAt, lastAt] = [isoOf(at), isoOf(at)]
      const more = { tier: textOf(fields.tier), url: textOf(fields.url) ?? '', count: 1 }
      answers.set(alike, { minute, status, reason, firstAt, lastAt, ...more })
    }
  }
  const happened = (fields: Fields): void => {
    const at = timeOf(fields.time)
    const isOfDay = calendar.dayOf(at) === calendar.dayOf(moment.at) && at < moment.until
    if (!isOfDay) return
    if (typeof fields.limit === 'number') limit = fields.limit
    if (events.length >= maxRows) return
    const what = [fields.msg, fields.action, fields.code].flatMap(each => textOf(each) ?? [])
    events.push({ at: isoOf(at), what: what.join(': ') })
  }

  return {
    /** Whether a line may say anything here, which is known before it is parsed. */
    isWanted: (line: string): boolean => {
      const time = /"time":"([^"]{24})"/.exec(line)?.[1]
      if (time === undefined) return false
      seen.first ||= time
      if (time > seen.last) seen.last = time
      seen.hasRequests ||= line.includes('"msg":"answered"')
      if (seen.share === 1 && line.includes('"share":'))
        seen.share = Number(/"share":(0(?:\.\d+)?),/.exec(line)?.[1] ?? 1)
      return [keyId, '"outage":"', '"status":401,', ...ofProcess].some(part => line.includes(part))
    },
    read: (fields: Fields): void => {
      if (Number.isNaN(timeOf(fields.time))) return
      const isOfKey = fields.keyId === keyId || fields.id === keyId
      if (fields.msg === 'answered') {
        if (isOfKey || fields.keyId === undefined) answered(fields, isOfKey)
      } else if ('outage' in fields) outages.read(fields)
      else if (fields.msg === 'stopped' || fields.msg === 'listening') outages.endProcess(fields)
      else if (isOfKey) happened(fields)
    },
    report: (): LogReport => {
      const ended = outages.close()
      return {
        firstAt: seen.first || null,
        lastAt: seen.last || null,
        hasRequests: seen.hasRequests,
        share: seen.share,
        answers: [...answers.values()].toSorted((one, other) => (one.firstAt < other.firstAt ? -1 : 1)),
        withoutKey,
        events,
        outages: ended,
        limit,
      }
    },
  }
}
