// Refuses what Node's parser can't make a request of: garbage, heads that are too large, CONNECT, and plain HTTP on a TLS port. Writes
// JSON to the socket after the answers to all whole requests before it. Nothing is counted, because no key is read.

import type { Socket } from 'node:net'
import { endSocket, isParserError, wasEnded } from '../common/closing.ts'
import type { Quota } from '../keys/meter.ts'
import type { Connection } from './connection/connection.ts'
import { closedLines, headOf } from './connection/connection.ts'
import type { Connections } from './connection/connections.ts'
import { badRequest, type DocUrl, type Problem, problemResponse } from './problem.ts'
import { methodProblem } from './refusals.ts'
import { dayLines, type Live } from './representation.ts'
import { requestIdOf } from './request.ts'
import { type Sentence, sentences } from './sentences.ts'

export type UnparsableParts = {
  readonly connections: Connections
  readonly quota: Pick<Quota, 'now' | 'resetAfter'>
  readonly live: Pick<Live, 'cors'>
  readonly docUrl: DocUrl
}

export const createUnparsable = ({ connections, quota, live, docUrl }: UnparsableParts) => {
  const refuse = (socket: Socket, problem: Problem): void => {
    const { lines, body } = problemResponse(problem, docUrl)
    const head = [
      headOf(problem.status, lines),
      `${dayLines(0, quota.resetAfter(quota.now()))}0\r\n`,
      live.cors?.lines(undefined, null) ?? '',
      `x-request-id: ${requestIdOf(undefined)}\r\n${closedLines}`,
    ]
    endSocket(socket, Buffer.concat([Buffer.from(head.join('')), body]))
  }

  return {
    refuseUnparsable: (socket: Socket, { code = '' }: NodeJS.ErrnoException): void => {
      // Below TLS, whose handshake failed, plain HTTP gets a plain answer.
      const below = plainFaults.has(code) ? connections.below(socket) : undefined
      if (below) {
        refuse(below, badRequest(sentences.http.plain))
        return
      }
      // Its end was sent: what the client sends on is read past for a while.
      if (wasEnded(socket)) return
      if (!isParserError(code) || !socket.writable) {
        socket.destroy()
        return
      }
      connections.end(connections.ofSocket(socket), lastIsWhole => {
        if (lastIsWhole) refuse(socket, badRequest(sentenceFor(code)))
        // A fault in the body of a request belongs to that request, which has its answer.
        else socket.destroySoon()
      })
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

// A first byte that begins no TLS: GET, HEAD, POST and PUT; CONNECT; any other.
const plainFaults: ReadonlySet<string> = new Set([
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_HTTPS_PROXY_REQUEST',
  'ERR_SSL_WRONG_VERSION_NUMBER',
])

const sentenceFor = (code: string): Sentence => {
  if (code === 'HPE_HEADER_OVERFLOW') return sentences.http.tooLarge
  if (code === 'HPE_INVALID_URL') return sentences.http.notEncoded
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? sentences.http.late : sentences.http.invalid
}
