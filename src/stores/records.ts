// The form of the records of a store, checked where they are read: others may have changed them, and disks can damage them. A record
// in another form counts as not there: one line of the log, one metric, and no effect on others.

import { z } from 'zod'
import { hourMs, utcDayMs } from '../common/calendar.ts'
import { safeText } from '../common/outside-text.ts'
import {
  type AnswerCount,
  type KeyRecord,
  type PreviousHash,
  type RateLimits,
  type Restrictions,
  StoreError,
  type Subscriber,
} from './store.ts'

/** The maximum size of a value whose reader gives no bound, in bytes. */
export const maxBytesRead = 1_048_576
/** The maximum number of cells in demand over the fleet, and how many of the latest are read. */
export const maxWanted = 500_000
export const maxWantedRead = 50_000
/** The maximum characters of the id of a key or a subscriber; those that `keys create` makes have 16. */
export const longestId = 200
/** The maximum bytes of a change record, and how many of a topic are kept. */
export const longestChangeRecord = 4_096
export const maxChangeRecords = 1_000
/** The maximum number of gateways that share a store. */
export const maxInstances = 1_000
/** The maximum bytes of what an instance reports of itself. */
export const longestReport = 2_048
/** The maximum number of rows that are read of one record. */
export const maxFields = 10_000
/** How long a lease holds the failure of a load: several polls of those who wait for it. */
export const failureKeptMs = 500
/** The largest valid count of units, responses or weight. */
export const maxCounted = 999_999_999_999_999
/** The longest valid closure of the provider: its longest window, and an hour of clock skew. */
export const longestClosureMs = utcDayMs + hourMs
/** How long a reopening of the provider is remembered: longer than any closure from before it. */
export const keepReopeningForMs = 2 * longestClosureMs
/** The maximum characters of the reason of a closure. */
export const longestReason = 300

export const recordKinds = ['key', 'subscriber', 'usage', 'usage_detail', 'message'] as const
export type RecordKind = (typeof recordKinds)[number]

/** A record in an invalid format; `fault` describes what is wrong. */
export type RefusedRecord = { readonly record: RecordKind; readonly name: string; readonly fault: string }

/** Observes damaged records. */
export type RecordObserver = {
  /** The record counts as not there. */
  recordRefused(refused: RefusedRecord): void
}

export const unobserved: RecordObserver = { recordRefused: () => {} }

/** A value of a record for a message: printable and cut. */
export const forMessage = (value: string): string => safeText(value, 60)

/** Reports a record that counts as not there. */
export const refuseRecord = (
  { recordRefused }: RecordObserver,
  record: RecordKind,
  name: string,
  fault: string,
): undefined => void recordRefused({ record, name: forMessage(name), fault })

/** A valid count or instant, which is a whole number from 0 on; undefined for anything else. */
export const wholeIn = (text: string | undefined): number | undefined => {
  const value = text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}

/** The latest valid instant, which is the latest that a Date can have. */
export const lastInstant = 8.64e15

/** A valid instant, in ms since the epoch; undefined for anything else. */
const instantIn = (text: string | undefined): number | undefined => {
  const value = wholeIn(text)
  return value !== undefined && value <= lastInstant ? value : undefined
}

/** The same for the numeric reply of a script. @throws StoreError */
export const wholeFrom = (value: unknown): number => {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  const whole = typeof value === 'string' ? wholeIn(value) : undefined
  if (whole !== undefined) return whole
  throw new StoreError(`the store answered "${forMessage(String(value))}" where a whole number was expected`)
}

const [blank, zero, nine, maxDigits] = [0x20, 0x30, 0x39, 15]

/** Whole numbers of up to 15 digits with a blank between two, read without a list of texts. @throws StoreError */
export const wholeNumbersIn = (text: string): number[] => {
  const numbers: number[] = []
  let [number, digits] = [0, 0]
  for (let i = 0; i <= text.length && text !== ''; i++) {
    const code = i < text.length ? text.charCodeAt(i) : blank
    if (code >= zero && code <= nine && digits < maxDigits) {
      number = number * 10 + code - zero
      digits += 1
    } else if (code === blank && digits > 0) {
      numbers.push(number)
      number = 0
      digits = 0
    } else throw new StoreError(`the store answered "${forMessage(text)}" where whole numbers were expected`)
  }
  return numbers
}

/** The maximum characters of a name, a hash or an id in a record. */
export const longestText = 400

/** The name of a subscriber, read without the other fields; null for an invalid one. */
export const nameIn = (value: string): string | null =>
  value !== '' && value.length <= longestText ? value : null

// Fields are texts, and an absent one is empty.
const textLength = `1 to ${longestText} characters`
const text = z.string(textLength).min(1, textLength).max(longestText, textLength)
const textOrNull = z
  .string()
  .max(longestText, `at most ${longestText} characters`)
  .transform(value => value || null)
  .prefault('')
const limitOrNull = z
  .string()
  .regex(/^(?:[1-9]\d{0,14})?$/, 'empty or an integer from 1')
  .transform(value => (value ? Number(value) : null))
  .prefault('')
const instantOrNull = z
  .string()
  .refine(value => value === '' || instantIn(value) !== undefined, 'empty or an instant in ms since 1970')
  .transform(value => instantIn(value) ?? null)
  .prefault('')
/** The maximum entries of a list of restrictions, and the characters of all restrictions, or rates, of a key as JSON. */
export const maxRestricted = 50
export const longestRestrictions = 4_000
/** The largest rate of a key. */
export const maxRate = 1_000_000

// A kind that this version does not know refuses the key: it may do less than is understood here.
const allowedOf = z.array(z.string().min(1).max(longestText)).min(1).max(maxRestricted).nullable()
const rateOrNull = z.int().min(1).max(maxRate).nullable()
/** The forms of restrictions and rates, in a record and in an export. */
export const restrictionsForm: z.ZodType<Restrictions> = z.strictObject({
  origins: allowedOf,
  addresses: allowedOf,
  endpoints: allowedOf,
})
export const ratesForm: z.ZodType<RateLimits> = z.strictObject({
  perSecond: rateOrNull,
  burst: rateOrNull,
  perMinute: rateOrNull,
})
const jsonOrNull = <Value>(form: z.ZodType<Value>, allowed: string) =>
  z
    .string()
    .max(longestRestrictions, allowed)
    .transform((value, context): Value | null => {
      if (value === '') return null
      const { data } = form.safeParse(parsedJson(value))
      if (data === undefined) context.addIssue({ code: 'custom', message: allowed })
      return data ?? null
    })
    .prefault('')
const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
// Only shown: a damaged one is 1970-01-01.
const createdAt = z.unknown().transform(value => instantIn(String(value)) ?? 0)

const keyRecord = z.object({
  id: text,
  hash: text,
  subscriberId: text,
  tier: text,
  limit: limitOrNull,
  createdAt,
  revokedAt: instantOrNull,
  expiresAt: instantOrNull,
  externalId: textOrNull,
  restrictions: jsonOrNull(restrictionsForm, 'empty or JSON of origins, addresses and endpoints'),
  rates: jsonOrNull(ratesForm, 'empty or JSON of perSecond, burst and perMinute'),
  // A hash whose end can't be read has ended.
  previousHashes: z
    .array(z.object({ hash: z.string(), validUntil: z.string().transform(instantIn) }))
    .transform(all =>
      all.flatMap(({ hash, validUntil }) => (validUntil === undefined ? [] : [{ hash, validUntil }])),
    )
    .transform(all => all.toSorted(byEnd)),
})
const subscriberRecord = z.object({ id: text, name: text, createdAt, revokedAt: instantOrNull })

const byEnd = (one: PreviousHash, other: PreviousHash): number =>
  one.validUntil - other.validUntil || (one.hash < other.hash ? -1 : 1)

/** Reads the fields of a record, which are texts; undefined for a damaged one, after the observer got it. */
const readerOf =
  <Value>(record: RecordKind, schema: z.ZodType<Value>) =>
  (fields: Fields, observer: RecordObserver): Value | undefined => {
    const { data, error } = schema.safeParse(fields)
    if (data !== undefined) return data
    const [issue] = error?.issues ?? []
    const field = String(issue?.path[0])
    const fault = `${field} must be ${issue?.message}, got "${forMessage(String(fields[field] ?? ''))}"`
    return refuseRecord(observer, record, String(fields.id), fault)
  }
type Fields = Readonly<Record<string, unknown>>

export const keyRecordIn = readerOf<KeyRecord>('key', keyRecord)
export const subscriberIn = readerOf<Subscriber>('subscriber', subscriberRecord)

/** The current and the previous hashes of a key. */
export const hashesOf = (key: Pick<KeyRecord, 'hash' | 'previousHashes'>): string[] => [
  key.hash,
  ...key.previousHashes.map(({ hash }) => hash),
]

/** The end of a hash of this key: null for the current one, undefined for none of its hashes. */
export const validUntilOf = (key: KeyRecord, hash: string): number | null | undefined =>
  key.hash === hash ? null : key.previousHashes.find(previous => previous.hash === hash)?.validUntil

/** @throws StoreError for a change record that is too long */
export const checkChangeRecord = (text: string): void => {
  const length = Buffer.byteLength(text)
  if (length > longestChangeRecord)
    throw new StoreError(`a change record must have at most ${longestChangeRecord} bytes, got ${length}`)
}

/** A count of responses for operators; undefined if it is invalid. */
export const answerCountOf = (
  statusClass: string,
  endpoint: string,
  countText: string,
): AnswerCount | undefined => {
  const count = wholeIn(countText)
  return count !== undefined &&
    count <= maxCounted &&
    /^(?:\dxx|other)$/.test(statusClass) &&
    /^[\w/ -]{1,64}$/.test(endpoint)
    ? { endpoint, statusClass, count }
    : undefined
}
