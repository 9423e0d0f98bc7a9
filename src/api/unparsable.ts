// Refuses what Node's parser can't make a request of: garbage, heads that are too large, CONNECT, and plain HTTP on a TLS port.
// Writes JSON straight to the socket, because there is no response object, after the answers to all whole requests before it.

import type { Socket } from 'node:net'
import { endWith, isOfParser, wasEnded } from '../common/unread-body.ts'
import type { Client } from '../keys/authentication.ts'
import type { Quota } from '../keys/meter.ts'
import type { Admission } from './admission.ts'
import type { ClientAddress } from './connection/client-address.ts'
import type { Connection } from './connection/connection.ts'
import type { Connections } from './connection/connections.ts'
import { closedLines, headOf } from './connection/ready-response.ts'
import { type InvalidHead, type InvalidHeadReader, readInvalidHead } from './invalid-head.ts'
import { badRequest, type DocUrl, type Problem, problemResponse } from './problem.ts'
import { rateLimitLines, testLines } from './rate-lines.ts'
import { methodProblem, type Transport } from './refusals.ts'
import type { Live } from './representation.ts'
import { countAnswer, requestIdOf } from './request.ts'
import type { AnswerObserver } from './request-state.ts'
import { type Sentence, sentences } from './sentences.ts'
import { traceContextOf } from './trace-context.ts'

/** The fields of an error of Node's parser besides its code. */
export type ParserError = NodeJS.ErrnoException & {
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

export type UnparsableParts = {
  readonly connections: Connections
  readonly admission: Admission
  readonly quota: Pick<Quota, 'now' | 'resetAfter'>
  readonly isPlain: Transport['isPlain']
  readonly live: Pick<Live, 'cors'>
  readonly observer: AnswerObserver
  readonly clientAddress: ClientAddress
  readonly docUrl: DocUrl
}

export const createUnparsable = ({
  connections,
  admission,
  quota,
  isPlain,
  live,
  observer,
  clientAddress,
  docUrl,
}: UnparsableParts) => {
  /** Returns the length of the body. */
  const refuse = (
    socket: Socket,
    problem: Problem,
    { id, client, remaining, origin }: Refused = nobody(),
  ): number => {
    const { lines, body } = problemResponse(problem, docUrl)
    const arrivedAt = quota.now()
    const resetsAt = quota.resetAfter(arrivedAt)
    const head = [
      headOf(problem.status, lines),
      rateLimitLines({ client, remaining, isDecided: true, arrivedAt, resetsAt }),
      client?.isTest ? testLines : '',
      live.cors?.lines(origin, client) ?? '',
      `x-request-id: ${id}\r\n${closedLines}`,
    ]
    endWith(socket, Buffer.concat([Buffer.from(head.join('')), body]))
    return body.length
  }

  // A client with a key gets its rate-limit headers with every answer.
  const refuseHead = async (
    socket: Socket,
    { method, url, httpVersion, headers }: InvalidHead,
    problem: Problem,
  ): Promise<void> => {
    const started = performance.now()
    const { origin, 'x-request-id': givenId, 'x-forwarded-for': forwardedFor, traceparent = '' } = headers
    const nobodyYet = { ...nobody(givenId), origin }
    // The order of the contract: HTTPS before the key.
    if (isPlain({ socket, headers })) {
      refuse(socket, badRequest(sentences.http.plain), nobodyYet)
      return
    }
    const connection = connections.ofSocket(socket)
    const charged = await admission.charge({ socket, headers }, connection.keyMemo, quota.now())
    const final = charged.problem ?? problem
    const { client, remaining } = charged
    const bytes = refuse(socket, final, { ...nobodyYet, client, remaining })
    if (!client) return
    const peer = connection.peer ?? clientAddress.ofPeer(socket.remoteAddress)
    const access = {
      requestId: nobodyYet.id,
      status: final.status,
      keyId: client.keyId,
      tier: client.tier,
      isTest: client.isTest,
      bytes,
      ms: Math.round((performance.now() - started) * 1000) / 1000,
      endpoint: 'other' as const,
      arrivedAt: quota.now(),
      method,
      url,
      cache: undefined,
      cell: undefined,
      cost: undefined,
      encoding: undefined,
      notModified: undefined,
      reason: charged.reason,
      traceId: traceContextOf(traceparent)?.traceId,
      address: clientAddress.loggedOf(peer, forwardedFor),
      connection,
      connectionRequest: connection.requestsCame + 1,
      httpVersion,
    }
    countAnswer(observer, access)
    observer.access?.(access)
  }
  const refuseParsed = (socket: Socket, code: string | undefined, head?: InvalidHead): void => {
    connections.end(connections.ofSocket(socket), lastIsWhole => {
      const problem = badRequest(sentenceFor(code))
      // A fault in the body of a request belongs to that request, which has its answer.
      if (!lastIsWhole) socket.destroySoon()
      else if (head) void refuseHead(socket, head, problem)
      else refuse(socket, problem)
    })
  }

  // A request whose URL or size is at fault is read to the end of its head, for its key.
  const readers = new WeakMap<Socket, { readonly reader: InvalidHeadReader; readonly code: string }>()

  return {
    refuseUnparsable: (socket: Socket, { code, rawPacket, bytesParsed = 0 }: ParserError): void => {
      // Below TLS, whose handshake failed, plain HTTP gets a plain answer.
      const below = plainFaults.has(code ?? '') ? connections.below(socket) : undefined
      if (below) return void refuse(below, badRequest(sentences.http.plain))
      // Its end was sent: what the client sends on is read past for a while.
      if (wasEnded(socket)) return
      if (!isOfParser(code) || !socket.writable) {
        socket.destroy()
        return
      }
      const begun = readers.get(socket)
      const { reader, code: first } = begun ?? { reader: readInvalidHead(), code: code ?? '' }
      if (!begun && !headFaults.has(first)) refuseParsed(socket, code)
      else if (reader.take(rawPacket, bytesParsed)) refuseParsed(socket, first, reader.head())
      else if (!begun) readers.set(socket, { reader, code: first })
    },
    refuseConnect: (socket: Socket, connection: Connection): void => {
      // Node has removed its listeners: without one for errors, a reset would end the process.
      socket.on('error', () => socket.destroy())
      connections.end(connection, () => {
        // CONNECT names no path of the API, so it is refused before any key is read.
        refuse(socket, methodProblem({ method: 'CONNECT', headers: {} }))
        socket.resume()
      })
    },
  }
}

type Refused = {
  readonly id: string
  readonly client: Client | null
  readonly remaining: number
  readonly origin?: string | undefined
}
const nobody = (id?: string): Refused => ({ id: requestIdOf(id), client: null, remaining: 0 })

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
