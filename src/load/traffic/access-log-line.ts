// A line of the gateway's own access log (telemetry/access-log.ts) as a request of traffic. Other lines of the log hold none. Client
// addresses and what else a line says of the consumer are left behind.

import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import type { Observer } from './format.ts'
import {
  amountOf,
  durationOf,
  instantOf,
  isStatus,
  methodOf,
  ownText,
  pathOf,
  recordedOutcome,
} from './request-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

type Fields = Readonly<Record<string, unknown>>

/** Undefined for a line that is not of an answered request. @throws InputError */
export const requestOfAccessLog = (
  line: string,
  { onShare }: Pick<Observer, 'onShare'>,
): TrafficRequest | undefined => {
  const fields = fieldsOf(line)
  if (fields.msg !== 'answered') return undefined
  const {
    method,
    url,
    arrivedAt,
    time,
    ms,
    status,
    bytes,
    encoding,
    notModified,
    cell,
    cache,
    keyId,
    share,
  } = fields
  if (typeof share === 'number') onShare(share)
  const duration = durationOf(ms)
  const size = amountOf(bytes)
  const arrival =
    arrivedAt === undefined
      ? // As versions before that field wrote it.
        Math.round(instantOf(time, 'time') - (duration ?? 0))
      : instantOf(arrivedAt, 'arrivedAt')
  return {
    at: arrival,
    method: methodOf(method),
    path: pathOf(url),
    // A replay sends no key that was refused, as none is sent for one that nobody knows.
    ...(typeof keyId === 'string' && status !== 401 ? { key: ownText(keyId.slice(0, 200)) } : {}),
    // Of what the consumer took, the log has what the gateway chose.
    ...(encoding === 'br' || encoding === 'gzip' ? { accepts: encoding } : {}),
    ...(typeof notModified === 'boolean' ? { conditional: true } : {}),
    ...(isStatus(status) ? { status } : {}),
    ...recordedOutcome(typeof cache === 'string' ? cache : undefined),
    ...(typeof cell === 'string' ? { cell: ownText(cell.slice(0, 60)) } : {}),
    ...(size === undefined ? {} : { bytes: size }),
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
