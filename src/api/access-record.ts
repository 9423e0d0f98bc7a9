// The record of a request at its end: figures for metrics and usage, and fields for access log and trace. Decides nothing of the
// answer; request-state.ts has the state of a running request.

import type { FastifyRequest } from 'fastify'
import type { ResponseName } from '../common/endpoints.ts'
import type { ClientAddress } from './connection/client-address.ts'
import { methodOf } from './connection/http2.ts'
import type { AnsweredUnparsable } from './connection/unparsable.ts'
import type { Access, Answered } from './request-state.ts'
import { traceContextOf } from './trace-context.ts'

export type AnswerObserver = {
  /** Times a response. */
  responded(endpoint: ResponseName, status: number, seconds: number): void
  /** Counts a response for the usage of its key. */
  used(answered: Answered): void
  /** Logs a response; undefined when responses are not logged. */
  access: ((access: Access) => void) | undefined
}

export const countAnswer = ({ responded, used }: AnswerObserver, answered: Answered): void => {
  responded(answered.endpoint, answered.status, answered.ms / 1000)
  used(answered)
}

/** The record of a request that Fastify answered. @param connectionRequest its number on the connection */
export const accessOf = (
  { id, originalUrl, raw, state }: FastifyRequest,
  { endpoint, status, ms, keyId, arrivedAt }: Answered,
  connectionRequest: number,
  clientAddress: ClientAddress,
): Access => {
  const { headers, httpVersion } = raw
  const { peer, number } = state.connection
  return {
    requestId: id,
    method: methodOf(raw),
    url: originalUrl,
    endpoint,
    status,
    arrivedAt,
    ms,
    keyId: keyId ?? state.refusedKeyId,
    cache: state.cache,
    tier: state.client?.tier,
    cell: state.cell,
    bytes: state.bytes,
    encoding: state.encoding,
    notModified: headers['if-none-match'] === undefined ? undefined : status === 304,
    reason: state.reason,
    traceId: state.traceId,
    client:
      peer &&
      clientAddress.masked(clientAddress.behind(peer, headers['x-forwarded-for'] as string | undefined)),
    connection: number,
    connectionRequest,
    httpVersion,
  }
}

/** The record of a request that Node's parser refused and that had a good key. */
export const accessOfUnparsable = (
  { head: { method, url, httpVersion, headers }, connection, socket, ...response }: AnsweredUnparsable,
  arrivedAt: number,
  clientAddress: ClientAddress,
): Access => {
  const peer = connection.peer ?? clientAddress.ofPeer(socket.remoteAddress)
  return {
    ...response,
    endpoint: 'other',
    arrivedAt,
    method,
    url,
    cache: undefined,
    cell: undefined,
    encoding: undefined,
    notModified: undefined,
    reason: undefined,
    traceId: traceContextOf(headers.traceparent ?? '')?.traceId,
    client: clientAddress.masked(clientAddress.behind(peer, headers['x-forwarded-for'])),
    connection: connection.number,
    connectionRequest: connection.requestsCame + 1,
    httpVersion,
  }
}
