// Keys as tables for people and as CSV for other programs.

import { csvLine } from '../../catalogue/csv-text.ts'
import { tableOf } from '../../command-line/tables.ts'
import { jsonText, printable } from '../../common/outside-text.ts'
import type { CreatedKey, KeyUsage, ListedKey } from '../../keys/administration.ts'
import { rateKinds } from '../../stores/store.ts'
import { listText, ratesText } from './term-options.ts'

type Row = ListedKey & KeyUsage
type Column = { readonly heading: string; readonly of: (key: Row) => string; readonly isOptional?: true }

const columnsIn = (timeZone: string): readonly Column[] => [
  { heading: 'id', of: key => key.id },
  { heading: 'external id', of: key => key.externalId ?? '', isOptional: true },
  { heading: 'subscriber', of: key => key.subscriber },
  { heading: 'tier', of: key => key.tier },
  { heading: 'limit', of: key => `${key.limit ?? 'not configured'}${key.ownLimit ? ' (own)' : ''}` },
  { heading: 'status', of: key => key.status },
  { heading: 'created (UTC)', of: key => minuteText(key.createdAt) },
  { heading: 'expires (UTC)', of: key => minuteText(key.expiresAt), isOptional: true },
  { heading: `last used (${timeZone})`, of: key => key.lastUsedOn ?? 'never' },
  { heading: 'old key until (UTC)', of: key => minuteText(key.formerKeyUntil), isOptional: true },
  { heading: 'rates', of: key => ratesText(key.rates), isOptional: true },
  { heading: 'endpoints', of: key => listText(key.restrictions?.endpoints), isOptional: true },
  { heading: 'origins', of: key => listText(key.restrictions?.origins), isOptional: true },
  { heading: 'addresses', of: key => listText(key.restrictions?.addresses), isOptional: true },
]

/** Optional columns are there when a key has a value for them. @param timeZone of the days of usage */
export const keyTable = (keys: readonly Row[], timeZone: string): string => {
  const shown = columnsIn(timeZone).filter(
    ({ of, isOptional }) => !isOptional || keys.some(key => of(key) !== ''),
  )
  return tableOf(
    shown.map(({ heading }) => heading),
    keys.map(key => shown.map(({ of }) => of(key))),
  )
}

/** An instant to the minute; empty for none. */
export const minuteText = (iso: string | null): string => (iso ?? '').slice(0, 16).replace('T', ' ')

/** All fields of keys, with a header. */
export const keysCsv = (keys: readonly Row[]): string =>
  [
    csvLine(csvHeader),
    ...keys.map(key =>
      csvLine([
        ...[key.id, key.externalId, key.subscriber, key.subscriberId, key.tier, key.limit, key.ownLimit],
        ...[key.status, key.createdAt, key.expiresAt, key.revokedAt, key.lastUsedOn, key.usedToday],
        ...(['origins', 'addresses', 'endpoints'] as const).map(kind => listText(key.restrictions?.[kind])),
        ...rateKinds.map(kind => key.rates?.[kind] ?? null),
      ]),
    ),
  ].join('')
const csvHeader = [
  ...['id', 'external_id', 'subscriber', 'subscriber_id', 'tier', 'limit', 'own_limit'],
  ...['status', 'created', 'expires', 'revoked', 'last_used', 'used_today'],
  ...['origins', 'addresses', 'endpoints', 'per_second', 'burst', 'per_minute'],
]

/** The form of created keys: lines, with what stands before, between and after them. */
export type CreatedForm = {
  readonly head: string
  readonly between: string
  readonly tail: string
  line(key: CreatedKey): string
}

const lines = { head: '', between: '', tail: '' }

export const createdText: CreatedForm = {
  ...lines,
  line: ({ id, key, subscriber, externalId }) =>
    `${[id, key ?? '(existed)', printable(externalId ?? subscriber)].join('  ')}\n`,
}

export const createdCsv: CreatedForm = {
  ...lines,
  head: csvLine(['id', 'key', 'external_id', 'subscriber', 'tier', 'limit', 'expires', 'existed']),
  line: ({ id, key, externalId, subscriber, tier, limit, expiresAt, existed }) =>
    csvLine([id, key, externalId, subscriber, tier, limit, expiresAt, existed]),
}

export const createdJson: CreatedForm = { head: '[\n', between: ',\n', tail: '\n]\n', line: jsonText }
