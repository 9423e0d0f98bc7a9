// Reads a line of the gateway's access log as a request, without client addresses and other facts about the consumer.

import { logFieldsOf } from 'abohawa/common/text-lines.ts'
import { testTier } from 'abohawa/keys/test-keys.ts'
import type { Found } from './format.ts'
import { durationOf, instantOf, known, methodOf, ownText, pathOf, recordedOutcome } from './request-line.ts'
import { heldAs, type TrafficRequest } from './traffic-request.ts'

/** Undefined for other log lines, and for test keys, which never reach the cache. @throws InputError */
export const requestOfAccessLog = (line: string, found: Pick<Found, 'share'>): TrafficRequest | undefined => {
  const fields = logFieldsOf(line)
  if (fields.msg !== 'answered' || fields.tier === testTier) return undefined
  const { arrivedAt, time, status, encoding, notModified, cell, cache, keyId, share } = fields
  if (typeof share === 'number') found.share = Math.min(share, found.share ?? share)
  const ms = durationOf(fields.ms)
  const { cell: ofCache, ...outcome } = recordedOutcome(typeof cache === 'string' ? cache : undefined)
  return known({
    at:
      arrivedAt === undefined
        ? // Older versions have no `arrivedAt`.
          Math.round(instantOf(time, 'time') - (ms ?? 0))
        : instantOf(arrivedAt, 'arrivedAt'),
    method: methodOf(fields.method),
    path: pathOf(fields.url),
    // A replay sends no refused key.
    key: typeof keyId === 'string' && status !== 401 ? ownText(keyId.slice(0, 200)) : undefined,
    // The log has only the encoding that was chosen.
    accepts: encoding === 'br' || encoding === 'gzip' ? encoding : undefined,
    conditional: typeof notModified === 'boolean' || undefined,
    status: heldAs('status', status),
    ...outcome,
    cell: typeof cell === 'string' ? ownText(cell.slice(0, 60)) : ofCache,
    bytes: heldAs('bytes', fields.bytes),
    ms,
  })
}
