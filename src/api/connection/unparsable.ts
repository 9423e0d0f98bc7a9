// Refuses what Node's parser can't make a request of: garbage, heads that are too large, CONNECT, and plain HTTP on a TLS port.
// Writes JSON straight to the socket, because there is no response object, after the answers to all whole requests before it.

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { endWith, isOfParser, wasEnded } from '../../common/unread-body.ts'
import { type Charged, type IsPlain, rateLimitLines } from '../admission.ts'
import { badRequest, Problem, problemBody } from '../problem.ts'
import { jsonType } from '../representation.ts'
import { requestIdOf } from '../request-id.ts'
import { type Sentence, sentences } from '../sentences.ts'
import type { Connection, Connections } from './connections.ts'
import { type InvalidHead, type InvalidHeadReader, readInvalidHead } from './invalid-head.ts'

// An import would load Node's client for fetch too, a twentieth of a start.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

type Refuse<Parts extends unknown[]> = (socket: Socket, ...parts: Parts) => void

/** The fields of an error of Node's parser besides its code. */
export type ParserError = NodeJS.ErrnoException & {
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

/** A request with a good key, and its answer. */
export type AnsweredUnparsable = {
  readonly head: InvalidHead
  readonly connection: Connection
  readonly socket: Socket
  readonly requestId: string
  readonly status: number
  readonly keyId: string
  readonly tier: string | undefined
  readonly bytes: number
  readonly ms: number
}

export type UnparsableParts = {
  readonly connections: Connections
  /** Now and the next local midnight, ms since the epoch, for the rate-limit headers. */
  readonly day: () => { readonly arrivedAt: number; readonly resetsAt: number }
  readonly isPlain: IsPlain
  /** The header lines that let a web page read a response. */
  readonly corsLines: (headers: { readonly origin?: string }) => string
  /** Counts a request for the key that came with it. */
  readonly charge: (key: string | undefined, connection: Connection) => Promise<Charged>
  /** A request with a good key was answered. */
  readonly answered: (response: AnsweredUnparsable) => void
}

export const createUnparsable = ({
  connections,
  day,
  isPlain,
  corsLines,
  charge,
  answered,
}: UnparsableParts): {
  readonly refuseUnparsable: Refuse<[ParserError]>
  readonly refuseConnect: Refuse<[IncomingMessage]>
} => {
  /** Returns the length of the body. */
  const refuse = (
    socket: Socket,
    id: string,
    problem: Problem,
    { limit, remaining } = nothing,
    headersGiven: { readonly origin?: string } = {},
  ): number => {
    const { status, headers } = problem
    const body = problemBody(problem)
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      `content-type: ${jsonType}`,
      `content-length: ${body.length}`,
      'cache-control: no-store',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `x-request-id: ${id}`,
      `${corsLines(headersGiven)}${rateLimitLines({ limit, remaining, isDecided: limit > 0, ...day() })}connection: close`,
    ]
    endWith(socket, Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]))
    return body.length
  }

  // A client with a key gets its rate-limit headers with every answer.
  const refuseHead = async (socket: Socket, head: InvalidHead, problem: Problem): Promise<void> => {
    const started = performance.now()
    const { headers } = head
    const requestId = requestIdOf(headers['x-request-id'])
    // The order of the contract: HTTPS before the key.
    if (isPlain({ socket, headers })) {
      refuse(socket, requestId, badRequest(sentences.http.plain), nothing, headers)
      return
    }
    const connection = connections.ofSocket(socket)
    const charged = await charge(headers['x-api-key'], connection)
    const final = charged.problem ?? problem
    const bytes = refuse(socket, requestId, final, charged, headers)
    const { keyId, tier } = charged
    const ms = Math.round((performance.now() - started) * 1000) / 1000
    if (keyId !== undefined)
      answered({ head, connection, socket, requestId, status: final.status, keyId, tier, bytes, ms })
  }
  // Below TLS, whose handshake failed: plain HTTP gets a plain answer.
  const refusePlain = (socket: Socket): void => {
    refuse(socket, requestIdOf(undefined), badRequest(sentences.http.plain))
  }
  const refuseUnparsable = (socket: Socket, code: string | undefined, head?: InvalidHead): void => {
    connections.end(connections.ofSocket(socket), lastIsWhole => {
      const problem = badRequest(sentenceFor(code))
      // A fault in the body of a request belongs to that request, which has its answer.
      if (!lastIsWhole) socket.destroySoon()
      else if (head) void refuseHead(socket, head, problem)
      else refuse(socket, requestIdOf(undefined), problem)
    })
  }

  // A request whose URL or size is at fault is read to the end of its head, for its key.
  const readers = new WeakMap<Socket, { readonly reader: InvalidHeadReader; readonly code: string }>()

  return {
    refuseUnparsable: (socket, { code, rawPacket, bytesParsed = 0 }) => {
      const below = plainFaults.has(code ?? '') ? connections.below(socket) : undefined
      if (below) return refusePlain(below)
      // Its end was sent: what the client sends on is read past for a while.
      if (wasEnded(socket)) return
      if (!isOfParser(code) || !socket.writable) {
        socket.destroy()
        return
      }
      const begun = readers.get(socket)
      const { reader, code: first } = begun ?? { reader: readInvalidHead(), code: code ?? '' }
      if (!begun && !headFaults.has(first)) refuseUnparsable(socket, code)
      else if (reader.take(rawPacket, bytesParsed)) refuseUnparsable(socket, first, reader.head())
      else if (!begun) readers.set(socket, { reader, code: first })
    },
    refuseConnect: (socket, request) => {
      // Node has removed its listeners: without one for errors, a reset would end the process.
      socket.on('error', () => socket.destroy())
      connections.end(connections.of(request), () => {
        // CONNECT names no path of the API, so it is refused before any key is read.
        refuse(
          socket,
          requestIdOf(undefined),
          new Problem(405, sentences.http.method('CONNECT'), { allow: 'GET, HEAD' }),
        )
        socket.resume()
      })
    },
  }
}

const nothing = { limit: 0, remaining: 0 }

// A first byte that begins no TLS: GET, HEAD, POST and PUT; CONNECT; any other.
const plainFaults: ReadonlySet<string> = new Set([
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_HTTPS_PROXY_REQUEST',
  'ERR_SSL_WRONG_VERSION_NUMBER',
])
const headFaults: ReadonlySet<string> = new Set(['HPE_INVALID_URL', 'HPE_HEADER_OVERFLOW'])

const sentenceFor = (code: string | undefined): Sentence => {
  if (code === 'HPE_HEADER_OVERFLOW') return sentences.http.tooLarge
  if (code === 'HPE_INVALID_URL') return sentences.http.notEncoded
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? sentences.http.late : sentences.http.invalid
}
