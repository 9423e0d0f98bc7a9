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

/** Told of every refusal and dropped connection; `from` is the caller's address, if known. */
export type RefusalObserver = { refused(reason: RefusalReason, from?: string): void }

/** Told also when what answers requests could not be loaded. */
export type ListenerObserver = RefusalObserver & { unloadable(cause: unknown): void }

export const jsonType = 'application/json; charset=utf-8'

const statuses: ReadonlyMap<string, number> = new Map([
  ['bad_input', 400],
  ['not_found', 404],
  ['store_unavailable', 503],
  ['already_warming', 409],
])

/** Fastify's errors bring their own status. */
export const statusOf = (error: unknown): number => {
  if (error instanceof Refusal) return error.status
  if (error instanceof AbohawaError) return statuses.get(error.code) ?? 500
  return (error as { statusCode?: number }).statusCode ?? 500
}

// On a Unix socket, the process in front names the address of its caller.
export const addressOf = ({ socket, headers }: IncomingMessage): string | undefined => {
  const given = headers['x-forwarded-for'] as string | undefined
  return socket.remoteAddress ?? (isIP(given ?? '') === 0 ? undefined : given)
}
