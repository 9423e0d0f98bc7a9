// A refused request of an operator: a status, a reason for the metric, one sentence; and how a request whose answer fails is
// answered. Decides nothing: the part that finds a fault creates the refusal.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { AbohawaError, messageOf } from '../../common/errors.ts'
import { endBehind, isLast } from '../../common/unread-body.ts'
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

/** Answers with an error, or breaks off an answer that has begun. The connection ends behind a body that is not read. */
export const answerError = (error: unknown, response: ServerResponse, observer: RefusalObserver): void => {
  const { req: request } = response
  if (response.headersSent) {
    response.destroy()
    return
  }
  const headers = error instanceof Refusal ? { ...error.headers } : {}
  if (error instanceof Refusal) observer.refused(error.reason, addressOf(request))
  if (isLast(request) && !request.complete) {
    observer.refused('unread_body')
    endBehind(request, response)
    request.resume()
    headers.connection = 'close'
  }
  const body = Buffer.from(JSON.stringify({ error: messageOf(error) }))
  response
    .writeHead(statusOf(error), { ...headers, 'content-type': jsonType, 'content-length': body.length })
    .end(body)
}

export const jsonType = 'application/json; charset=utf-8'

const statuses: ReadonlyMap<string, number> = new Map([
  ['bad_input', 400],
  ['not_found', 404],
  ['store_unavailable', 503],
  ['already_warming', 409],
])

/** Also of an error of Fastify, which has a status of its own. */
const statusOf = (error: unknown): number => {
  if (error instanceof Refusal) return error.status
  if (error instanceof AbohawaError) return statuses.get(error.code) ?? 500
  return (error as { statusCode?: number }).statusCode ?? 500
}

// A Unix socket has no address: there the process that hands requests on names that of its caller.
export const addressOf = ({ socket, headers }: IncomingMessage): string | undefined => {
  const given = headers['x-forwarded-for'] as string | undefined
  return socket.remoteAddress ?? (isIP(given ?? '') === 0 ? undefined : given)
}
