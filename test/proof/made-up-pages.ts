// Pages of a made-up history: the status page of its first gateway, and what its first key is told of itself.

import { hash } from 'node:crypto'
import { type At, counted, midnight, noon } from './made-up-history.ts'

const minute = 60_000
const day = 1_440 * minute
const days = 30

type Status = {
  /** What is out since noon. */
  readonly outages?: readonly ('weather' | 'quotas')[]
  /** When the model run began. */
  readonly run?: string
  /** Of this day; without it nothing is known of it. */
  readonly availability?: number
}

const minuteOf = (at: number): string => new Date(Math.floor(at / minute) * minute).toISOString()
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

export const statusPage = (afterMs: number, { outages = [], run, availability }: Status = {}): At => {
  const minutes = (known: boolean) => ({ weather: known ? 0 : null, quotas: known ? 0 : null })
  const body = JSON.stringify({
    at: minuteOf(noon + afterMs),
    weather: {
      ...{ fresh_share: null, median_age_seconds: null, oldest_age_seconds: null },
      model_run: run ?? null,
    },
    outages: outages.map(of => ({ of, since: minuteOf(noon) })),
    days: Array.from({ length: days }, (_, i) => ({
      day: dayOf(noon - i * day),
      availability: (i === 0 ? availability : undefined) ?? null,
      outage_minutes: minutes(i === 0 && availability !== undefined),
    })),
  })
  return counted(afterMs, 0, {
    path: '/status.json',
    body,
    headers: {
      ...{ 'x-ratelimit-limit': '0', 'ratelimit-policy': '', ratelimit: '' },
      ...{ 'cache-control': 'no-cache', vary: 'accept-encoding', 'x-content-type-options': 'nosniff' },
      ...{ link: '', etag: `W/"${hash('sha256', body, 'base64url').slice(0, 22)}"` },
    },
  })
}

/** What `/key` says on the next day, of which nothing is used. @param usedBefore the units of this day */
export const keyOnNextDay = (afterMs: number, usedBefore: number): At => {
  const end = midnight + day
  const body = JSON.stringify({
    ...{ id: 'key_one', tier: 'tiny', limit: 3, used: 0, remaining: 3, reason: null },
    ...{ reset_at: new Date(end).toISOString(), rates: null, restrictions: null },
    ...{ created_at: new Date(noon).toISOString(), expires_at: null },
    days: Array.from({ length: days }, (_, i) => ({
      day: dayOf(noon + day - i * day),
      used: i === 1 ? usedBefore : 0,
    })),
  })
  return counted(afterMs, 3, {
    path: '/key',
    body,
    headers: {
      'x-ratelimit-reset': String(end / 1_000),
      ratelimit: `"daily";r=3;t=${Math.ceil((end - noon - afterMs) / 1_000)}`,
      ...{ 'cache-control': 'private, no-store', link: '', etag: '', vary: '' },
    },
  })
}
