// Requests that never become one: garbage on the socket, heads that are too large, CONNECT. They are answered in JSON
// like every other failure, written straight to the socket because there is no response object, after the answers to
// all requests that came whole before them.

import type { Socket } from 'node:net'
import type { Connections } from './connections.ts'
import { jsonType } from './representation.ts'
import { requestIdOf } from './request-id.ts'
import { rateLimitHeaders } from './response-headers.ts'

type Refuse<Parts extends unknown[]> = (socket: Socket, ...parts: Parts) => void

/** @param resetsAt tells the next local midnight, ms since the epoch, for the rate-limit headers */
export const createUnparsable = (
  connections: Connections,
  resetsAt: () => number,
): { readonly refuseUnparsable: Refuse<[NodeJS.ErrnoException]>; readonly refuseConnect: Refuse<[]> } => {
  const refuse = (socket: Socket, head: string, error: string, more: readonly string[] = []): void => {
    const body = JSON.stringify({ error })
    const lines = [
      `HTTP/1.1 ${head}`,
      `content-type: ${jsonType}`,
      `content-length: ${Buffer.byteLength(body)}`,
      'cache-control: no-store',
      ...more,
      `x-request-id: ${requestIdOf(undefined)}`,
      `${rateLimitHeaders(0, 0, resetsAt())}connection: close`,
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
  }

  return {
    refuseUnparsable: (socket, { code }) => {
      if (code === 'ECONNRESET' || !socket.writable) {
        socket.destroy()
        return
      }
      connections.end(connections.of(socket), lastIsWhole => {
        // What spoils the body of a request is part of that request, which has its answer.
        if (lastIsWhole) refuse(socket, '400 Bad Request', sentenceFor(code))
        // Closes once that is out, whether or not the other side closes too.
        socket.destroySoon()
      })
    },
    refuseConnect: socket => {
      // Node hands the socket over bare: without a listener, a reset would end the process.
      socket.on('error', () => socket.destroy())
      connections.end(connections.of(socket), () => {
        // CONNECT names no path of ours, so it is refused before any key is asked for.
        const sentence = 'the method is CONNECT; allowed: GET, HEAD'
        refuse(socket, '405 Method Not Allowed', sentence, ['allow: GET, HEAD'])
        socket.destroySoon()
      })
    },
  }
}

const sentenceFor = (code: string | undefined): string => {
  if (code === 'HPE_HEADER_OVERFLOW') return 'the URL and headers are too large; allowed: 16 KiB together'
  if (code === 'HPE_INVALID_URL')
    return 'the URL holds characters that must be percent-encoded, such as %E0%A6%A2 for ঢ'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'the request did not arrive completely in time'
  return 'the request is not valid HTTP'
}
