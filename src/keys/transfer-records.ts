// The records of an export: one line of JSON each, with what a store can read back.

import { z } from 'zod'
import { InputError } from '../common/errors.ts'
import { isPrintable, jsonText } from '../common/outside-text.ts'
import { lastInstant, longestId, maxCounted, ratesForm, restrictionsForm } from '../stores/records.ts'
import { maxLimit } from './key-request.ts'

// Lists show these texts, and log lines have ids.
export const longestText = 200
const text = z
  .string()
  .min(1)
  .max(longestText, `it is longer than ${longestText} characters`)
  .refine(isPrintable, 'it has a control or bidi character')
const id = z
  .string()
  .regex(
    new RegExp(`^[\\w.-]{1,${longestId}}$`),
    `it must be 1 to ${longestId} letters, digits or the signs _ . -`,
  )
// What a store reads back.
const instant = z.int().min(0).max(lastInstant)
const count = z.int().min(0).max(maxCounted)
const subscriberRecord = z.strictObject({
  record: z.literal('subscriber'),
  id,
  name: text,
  createdAt: instant,
  revokedAt: instant.nullable(),
})
const keyRecord = z
  .strictObject({
    record: z.literal('key'),
    id,
    hash: text,
    subscriberId: id,
    tier: text,
    limit: z.int().min(1).max(maxLimit).nullable(),
    createdAt: instant,
    revokedAt: instant.nullable(),
    expiresAt: instant.nullable(),
    externalId: text.nullable(),
    restrictions: restrictionsForm.nullable().default(null),
    rates: ratesForm.nullable().default(null),
    formers: z.array(z.strictObject({ hash: text, validUntil: instant })),
  })
  .transform(({ formers, ...key }) => ({ ...key, previousHashes: formers }))
const usageRecord = z.strictObject({
  record: z.literal('usage'),
  keyId: id,
  day: z.iso.date(),
  used: count,
})
/** The last record: its absence shows that a file was cut off. */
const endRecord = z.strictObject({
  record: z.literal('end'),
  subscribers: count,
  keys: count,
  usage: count,
})
const transferRecord = z.discriminatedUnion('record', [subscriberRecord, keyRecord, usageRecord, endRecord])

/** One line of an export. Instants are ms since the epoch, days local. */
export type TransferRecord = z.infer<typeof transferRecord>
export type RecordOf<Kind> = Extract<TransferRecord, { record: Kind }>

/** A record as a line of an export. What a key does not have is left out, so that version 1.0 reads the file of a store without it. */
export const writeRecord = (record: TransferRecord): string => {
  if (record.record !== 'key') return jsonText(record)
  const { restrictions, rates, previousHashes: formers, ...key } = record
  return jsonText({ ...key, formers, ...(restrictions && { restrictions }), ...(rates && { rates }) })
}

/** @throws InputError that names the fault of the line */
export const readRecord = (line: string): TransferRecord => {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new InputError('it is not JSON')
  }
  const { data, error } = transferRecord.safeParse(value)
  if (data) return data
  const issue = error.issues[0]
  throw new InputError(
    issue?.path[0] === 'record' || !issue?.path.length
      ? 'it is not a record of a subscriber, a key, usage or the end'
      : `its ${issue.path.join('.')} is wrong: ${issue.message}`,
  )
}
