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

/**
 * Writes a whole response, unless one was written or the consumer is gone.
 * @param headers header lines, each with its CRLF; without those that every response has
 */
export type Respond = (
  exchange: Exchange,
  status: ResponseStatus,
  headers: string,
  body: readonly [Buffer?, Buffer?],
) => void

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

  return ({ id, client, remaining, resetsAt, response }, status, headers, body) => {
    const given = response as WithHead
    if (given._header || given.destroyed) return
    const stays = given.shouldKeepAlive && !isDraining()
    given.statusCode = status
    given._last = !stays
    if (status === 304) given._hasBody = false
    given._header = `${statusLines[status]}${headers}${rateLimitHeaders(client?.limit ?? 0, remaining, resetsAt)}x-request-id: ${id}\r\n${dateLine()}${stays ? keepAlive : close}`
    const [first, second] = body
    if (first && second && given._hasBody) {
      // A short first piece goes with the head: two pieces cost the socket less than three.
      given._headerSent = true
      given.socket?.cork()
      given.write(joined(given._header, first))
      given.end(second)
    } else given.end(first)
  }
}

const joined = (head: string, piece: Buffer): Buffer => {
  const bytes = Buffer.allocUnsafe(head.length + piece.length)
  bytes.write(head, 'latin1')
  bytes.set(piece, head.length)
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
