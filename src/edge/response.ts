// A response on the wire: the head as one string that is ready, then the pieces of the body. Node's own way to write a
// head checks and joins header by header, which costs as much as the rest of a hit; what is written here is made of
// words of ours alone. What a response says is for those who call.

import type { ServerResponse } from 'node:http'
import type { Clock } from '../clock.ts'
import type { Exchange } from './exchange.ts'
import type { ProblemStatus } from './problem.ts'
import { rateLimitHeaders } from './response-headers.ts'

/** What Node keeps of a head that it has written; its own writeHead sets the same. */
type WithHead = ServerResponse & {
  _header: string
  _headerSent: boolean
  _last: boolean
  _hasBody: boolean
}

export type ResponseStatus = 200 | 304 | ProblemStatus

/** Writes whole responses; nothing where one was written or the consumer is gone. */
export type Respond = {
  /** @param headers header lines, each with its CRLF, without those that every response has */
  with(exchange: Exchange, status: ResponseStatus, headers: string, body?: Buffer): void
  /** @param start the status line and headers of a 200, as `startOf` makes them, or the same as bytes */
  ready(exchange: Exchange, start: string | Buffer, body: Pieces): void
}

/** The bytes of a body, in one piece or in two of which the first is short. */
export type Pieces = readonly [Buffer] | readonly [Buffer, Buffer]

/** The start of a 200. */
export const startOf = (headers: string): string => statusLines[200] + headers

/** @param isDraining whether consumers are to open their next connection elsewhere */
export const createRespond = (clock: Clock, isDraining: () => boolean): Respond => {
  let second = 0
  let date = ''
  const dateLine = (): string => {
    const now = Math.floor(clock.now() / 1000)
    if (now !== second) {
      second = now
      date = `date: ${new Date(now * 1000).toUTCString()}\r\n`
    }
    return date
  }
  // What every response has, and no two alike.
  const ownLines = ({ id, client, remaining, resetsAt }: Exchange, stays: boolean): string =>
    `${rateLimitHeaders(client?.limit ?? 0, remaining, resetsAt)}x-request-id: ${id}\r\n${dateLine()}${stays ? keepAlive : close}`

  const begin = (exchange: Exchange, status: ResponseStatus): WithHead | undefined => {
    const response = exchange.response as WithHead
    if (response._header) return undefined
    // Also for whoever has left: the log tells what the answer was.
    response.statusCode = status
    if (response.destroyed) return undefined
    response._last = !response.shouldKeepAlive || isDraining()
    return response
  }

  return {
    with: (exchange, status, headers, body) => {
      const response = begin(exchange, status)
      if (!response) return
      if (status === 304) response._hasBody = false
      response._header = `${statusLines[status]}${headers}${ownLines(exchange, !response._last)}`
      response.end(body)
    },
    ready: (exchange, start, [first, second]) => {
      const response = begin(exchange, 200)
      if (!response) return
      const own = ownLines(exchange, !response._last)
      if (!response._hasBody) {
        response._header = (typeof start === 'string' ? start : start.toString('latin1')) + own
        response.end()
        return
      }
      // A short first piece goes with the head: two pieces cost the socket less than three.
      response._header = own
      response._headerSent = true
      response.socket?.cork()
      response.write(joined(start, own, second && first))
      response.end(second ?? first)
    },
  }
}

const joined = (start: string | Buffer, own: string, piece: Buffer | undefined): Buffer => {
  const pieceAt = start.length + own.length
  const bytes = Buffer.allocUnsafe(pieceAt + (piece?.length ?? 0))
  if (typeof start === 'string') bytes.write(start + own, 'latin1')
  else {
    bytes.set(start)
    bytes.write(own, start.length, 'latin1')
  }
  if (piece) bytes.set(piece, pieceAt)
  return bytes
}

/** How long a connection may rest between two requests, as Node closes it and as the head says. */
export const keepAliveMs = 72_000
const keepAlive = `connection: keep-alive\r\nkeep-alive: timeout=${keepAliveMs / 1000}\r\n\r\n`
const close = 'connection: close\r\n\r\n'

// The statuses of the contract.
const statusLines: Readonly<Record<ResponseStatus, string>> = {
  200: 'HTTP/1.1 200 OK\r\n',
  304: 'HTTP/1.1 304 Not Modified\r\n',
  400: 'HTTP/1.1 400 Bad Request\r\n',
  401: 'HTTP/1.1 401 Unauthorized\r\n',
  404: 'HTTP/1.1 404 Not Found\r\n',
  405: 'HTTP/1.1 405 Method Not Allowed\r\n',
  429: 'HTTP/1.1 429 Too Many Requests\r\n',
  500: 'HTTP/1.1 500 Internal Server Error\r\n',
}
