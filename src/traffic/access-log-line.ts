// A line of the gateway's own access log (ops/access-log.ts) as a request of traffic. Other lines of the log hold none. Client
// addresses and what else a line says of the consumer are left behind.

import { InputError } from '../errors.ts'
import { quoted } from '../outside-text.ts'
import { methodOf, pathOf } from './request-line.ts'
import type { Outcome, TrafficRequest } from './traffic-request.ts'

type Fields = Readonly<Record<string, unknown>>

/** Undefined for a line that is not of an answered request. @throws InputError */
export const requestOfAccessLog = (line: string): TrafficRequest | undefined => {
  const fields = fieldsOf(line)
  if (fields.msg !== 'answered') return undefined
  const { method, url, arrivedAt, time, ms, status, bytes, encoding, notModified, cell, cache, keyId } =
    fields
  const duration = numberOf(ms)
  const arrival = instantOf(arrivedAt) ?? endMinus(instantOf(time), duration)
  if (arrival === undefined)
    throw new InputError(
      `arrivedAt is ${quoted(JSON.stringify(arrivedAt) ?? '')}, expected an instant such as "2026-11-21T06:00:00.000Z"`,
    )
  return {
    at: arrival,
    method: methodOf(method),
    path: pathOf(url),
    ...(typeof keyId === 'string' ? { key: keyId.slice(0, 200) } : {}),
    // Of what the consumer took, the log has what the gateway chose.
    ...(encoding === 'br' || encoding === 'gzip' ? { accepts: encoding } : {}),
    ...(typeof notModified === 'boolean' ? { conditional: true } : {}),
    ...(isStatus(status) ? { status } : {}),
    ...outcomeOf(cache),
    ...(typeof cell === 'string' ? { cell: cell.slice(0, 60) } : {}),
    ...(numberOf(bytes) === undefined ? {} : { bytes: numberOf(bytes) as number }),
    ...(duration === undefined ? {} : { ms: duration }),
  }
}

// A runtime may write something before the line: a time, the name of a container.
const fieldsOf = (line: string): Fields => {
  const begin = line.startsWith('{') ? 0 : line.indexOf('{"level":')
  try {
    if (begin >= 0) return JSON.parse(begin === 0 ? line : line.slice(begin))
  } catch {}
  throw new InputError(`${quoted(line)} is no JSON`)
}

const instantOf = (value: unknown): number | undefined => {
  const instant = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(instant) ? undefined : instant
}
const endMinus = (end: number | undefined, ms = 0): number | undefined => (end === undefined ? end : end - ms)

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 ? value : undefined

const isStatus = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 599

/** From the parameters of `cache-status`; a negative ttl is that of a stale answer without a load behind it. */
const outcomeOf = (cache: unknown): { outcome?: Outcome; tier?: string } => {
  if (typeof cache !== 'string') return { outcome: 'none' }
  if (cache.startsWith('fwd=miss')) return { outcome: 'miss', tier: 'provider' }
  const tier = /detail=(\w{1,40})/.exec(cache)?.[1]
  const outcome = cache.startsWith('fwd=stale') || cache.includes('ttl=-') ? 'stale' : 'hit'
  return tier === undefined ? { outcome } : { outcome, tier }
}
