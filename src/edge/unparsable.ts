// Requests that never become one: garbage on the socket, heads that are too large, CONNECT. They are answered in JSON
// like every other failure, written straight to the socket because there is no response object yet.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { jsonType } from './representation.ts'
import { requestIdOf } from './request-id.ts'
import { rateLimitHeaders } from './response-headers.ts'

/** @param resetsAt the next local midnight, ms since the epoch, for the rate-limit headers */
export const refuseUnparsable = (error: NodeJS.ErrnoException, socket: Socket, resetsAt: number): void => {
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
  else refuse(socket, 400, 'Bad Request', sentenceFor(error.code), resetsAt)
}

/** CONNECT names no path of ours, so it is refused before any key is asked for. */
export const refuseConnect = (socket: Socket, resetsAt: number): void => {
  // Node hands the socket over bare: without a listener, a reset would end the process.
  socket.on('error', () => socket.destroy())
  refuse(socket, 405, 'Method Not Allowed', 'the method is CONNECT; allowed: GET, HEAD', resetsAt, [
    'allow: GET, HEAD',
  ])
}

const sentenceFor = (code: string | undefined): string => {
  if (code === 'HPE_HEADER_OVERFLOW') return 'the URL and headers are too large; allowed: 16 KiB together'
  if (code === 'HPE_INVALID_URL')
    return 'the URL holds characters that must be percent-encoded, such as %E0%A6%A2 for ঢ'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'the request did not arrive completely in time'
  return 'the request is not valid HTTP'
}

const refuse = (
  socket: Socket,
  status: number,
  reason: string,
  error: string,
  resetsAt: number,
  more: readonly string[] = [],
): void => {
  const pending = pendingResponse(socket)
  if (pending) {
    // The answer to an earlier request on the same connection is still owed; what came behind it gets none.
    pending.once('finish', () => socket.destroySoon())
    return
  }
  const body = JSON.stringify({ error })
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    `content-type: ${jsonType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'cache-control: no-store',
    ...more,
    `x-request-id: ${requestIdOf(undefined)}`,
    `${rateLimitHeaders(0, 0, resetsAt)}connection: close`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  // Closes once that is out, whether or not the other side closes too.
  socket.destroySoon()
}

// The response that Node is to write next on this connection, if any.
const pendingResponse = (socket: Socket): ServerResponse | undefined => {
  const { _httpMessage: message } = socket as Socket & { _httpMessage?: ServerResponse | null }
  return message ?? undefined
}
