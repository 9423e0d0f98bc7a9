// A refused request of an operator: a status, a reason for the metric, one sentence.

import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { AbohawaError } from '../../common/errors.ts'
import type { RefusalReason } from '../../telemetry/label-values.ts'

/** Thrown or returned by a check, sent by the listener. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number
  readonly reason: RefusalReason
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    reason: RefusalReason,
    sentence: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(sentence)
    this.status = status
    this.reason = reason
    this.headers = headers
  }
}

/** Hears of every refusal, and of connections that were dropped; `from` is the address of the caller, where it is known. */
export type RefusalObserver = { refused(reason: RefusalReason, from?: string): void }

export const jsonType = 'application/json; charset=utf-8'

const statuses: ReadonlyMap<string, number> = new Map([
  ['bad_input', 400],
  ['not_found', 404],
  ['store_unavailable', 503],
  ['already_warming', 409],
])

/** Also of an error of Fastify, which has a status of its own. */
export const statusOf = (error: unknown): number => {
  if (error instanceof Refusal) return error.status
  if (error instanceof AbohawaError) return statuses.get(error.code) ?? 500
  return (error as { statusCode?: number }).statusCode ?? 500
}

// A Unix socket has no address: there the process that hands requests on names that of its caller.
export const addressOf = ({ socket, headers }: IncomingMessage): string | undefined => {
  const given = headers['x-forwarded-for'] as string | undefined
  return socket.remoteAddress ?? (isIP(given ?? '') === 0 ? undefined : given)
}
