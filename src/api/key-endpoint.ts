// `GET /api/v1/key`: what a key may do, what is left of its quota, and what it used on each of thirty days. Takes no unit. Earlier days
// are read from the store once a minute for each key, so that a flood costs no more than one of refused requests.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { type Calendar, daysUpTo, isoOf, minuteMs } from '../common/calendar.ts'
import type { Client } from '../keys/authentication.ts'
import type { Quota } from '../keys/meter.ts'
import { StoreError, type UsageStore } from '../stores/store.ts'
import { headOf } from './connection/connection.ts'
import { jsonType } from './problem.ts'
import type { Send } from './representation.ts'
import type { RequestState } from './request-state.ts'

export type KeyEndpointParts = {
  readonly quota: Pick<Quota, 'isExact'>
  readonly usage: Pick<UsageStore, 'usedOn'>
  readonly calendar: Calendar
}

const days = 30
const maxKept = 10_000

/** The counts of a key up to a day, newest first, as the store had them. */
type Kept = { readonly day: string; readonly readAt: number; readonly counts: Promise<number[]> }

export const createKeyEndpoint = (
  { quota, usage, calendar }: KeyEndpointParts,
  send: Pick<Send, 'ready'>,
) => {
  const kept = new LRUCache<string, Kept>({ maxSize: maxKept, sizeCalculation: () => 1 })
  const countsOf = (keyId: string, now: number): Promise<number[]> => {
    const day = calendar.dayOf(now)
    const known = kept.get(keyId)
    if (known?.day === day && now >= known.readAt && now - known.readAt < minuteMs) return known.counts
    const counts = usage.usedOn(keyId, daysUpTo(day, days))
    kept.set(keyId, { day, readAt: now, counts })
    // A failed read is repeated.
    counts.catch(() => kept.delete(keyId))
    return counts
  }
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { state } = request
    const client = state.client as Client
    // In the same turn in which `remaining` was read.
    const counts =
      state.isDecided && quota.isExact(client.keyId)
        ? await countsOf(client.keyId, state.arrivedAt).catch(unknownWhileAway)
        : undefined
    const body = Buffer.from(JSON.stringify(bodyOf(client, state, counts, calendar)))
    const lines = `content-type: ${jsonType}\r\ncontent-length: ${body.length}\r\ncache-control: private, no-store\r\n`
    send.ready(request, reply, 200, headOf(200, lines), [body], false)
  }
}

const unknownWhileAway = (error: unknown): undefined => {
  if (!(error instanceof StoreError)) throw error
}

const bodyOf = (
  { keyId: id, tier, limit, record, rates, endsAt }: Client,
  { remaining, resetsAt, arrivedAt }: RequestState,
  /** Of thirty days; undefined where those of the fleet are not known. */
  counts: readonly number[] | undefined,
  calendar: Calendar,
) => {
  // A limit that was lowered during the day may be below what was used.
  const used = counts ? (remaining > 0 ? limit - remaining : Math.max(limit, counts[0] ?? 0)) : null
  const { restrictions } = record
  return {
    id,
    tier,
    limit,
    used,
    remaining: counts ? remaining : null,
    // Why the counts are null.
    reason: counts ? null : 'store_unavailable',
    reset_at: isoOf(resetsAt),
    // Those in force, the key's own or those of its tier.
    rates: rates
      ? {
          per_second: rates.perSecond,
          burst: rates.burst ?? rates.perSecond,
          per_minute: rates.perMinute,
        }
      : null,
    restrictions,
    created_at: isoOf(record.createdAt),
    expires_at: endsAt === null ? null : isoOf(endsAt),
    days: daysUpTo(calendar.dayOf(arrivedAt), days).map((day, i) => ({
      day,
      used: i === 0 || !counts ? used : (counts[i] ?? 0),
    })),
  }
}
