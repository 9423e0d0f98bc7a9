// Requests of one connection that come before the earlier ones are answered: which begin, which wait, and when too many wait. A waiting
// request is a parsed head: no unit is taken, no body made.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { stopParsing } from '../../common/closing.ts'
import { type Connection, isHttp2, type Waiting } from './connection.ts'
import { refuseStream } from './http2-response.ts'

// Requests that are begun together share a write to the store; the response of a place is some 25 kB.
const maxBegun = 8
// Over HTTP/2, where a proxy may send the requests of all its consumers on one session, and any of them may wait for the provider.
const maxListsBegun = 8
// As many as HTTP/2 allows at once. Node itself pauses a pipeline only for answers that are written and not taken.
const maxWaiting = 100
// What was read before the pause comes on top: 650 requests, if each has a key.
const maxWaitingWithKey = 1_000
// On all connections without a good key. The first request of a connection never waits.
const maxWaitingOfStrangers = 2_000
// How long the requests of an ended stranger still count, so that in a flood most end at their second request.
const endedForMs = 1_000

// The response of a place, a point, a key or a page of places; any other may be large, and HTTP/1.1 copies what is not read.
const small = /^\/api\/v1\/(?:[a-z]+\/|key|locations)/
// HTTP/2 copies no page that is the same for all. The router decodes a path with a %.
const mayBeList = /^[^?%]*(?:%|\/(?:weather|forecast)\?)/

/** @param ended a connection takes no further request, because too many wait */
export const createPipelines = (ended: () => void) => {
  let ofStrangers = 0

  const countStrangers = ({ isAuthenticated, session }: Connection, by: number): void => {
    if (!isAuthenticated && !session) ofStrangers += by
  }
  const drop = (connection: Connection): void => {
    countStrangers(connection, -(connection.waiting?.length ?? 0))
    // A session of HTTP/2 closes once no stream is open.
    for (const { response } of connection.waiting ?? []) if (isHttp2(response)) refuseStream(response)
    connection.waiting = undefined
  }
  const uncount = (count: number): void => {
    ofStrangers -= count
  }
  const isStrangerBeyond = (connection: Connection, count: number): boolean =>
    !connection.isAuthenticated &&
    (ofStrangers > maxWaitingOfStrangers || (count >= maxWaiting && !mayHaveGoodKey(connection)))
  const boundWaiting = (connection: Connection, { request, response }: Waiting): void => {
    const count = connection.waiting?.length ?? 0
    if (count >= maxWaiting) pause(connection, request)
    const mustGo = isStrangerBeyond(connection, count)
    if (!mustGo && count < maxWaitingWithKey) return
    ended()
    connection.isEnding = true
    stopParsing(request.socket)
    if (mustGo) {
      connection.waiting = undefined
      setTimeout(uncount, endedForMs, count).unref()
      // Whose key is still looked up may be a good client that came in a flood of others.
      connection.isFlooding = connection.refusals > 0
      request.socket.destroy()
    } else {
      response.shouldKeepAlive = false
      pause(connection, request)
    }
  }
  const next = (connection: Connection): void => {
    for (let first = connection.waiting?.[0]; first; first = connection.waiting?.[0]) {
      const { request, response, begin } = first
      if (!mayBegin(connection, request)) return
      countStrangers(connection, -1)
      connection.waiting?.shift()
      if (isWanted(first)) begin(request, response)
    }
    connection.waiting = undefined
  }

  return {
    /** Whether a request has to wait for those before it; `begin` is called when it is its turn. */
    waits: (
      connection: Connection,
      request: IncomingMessage,
      response: ServerResponse,
      begin: Waiting['begin'],
    ): boolean => {
      // Over HTTP/2, only lists wait.
      if ((!connection.waiting || isHttp2(request)) && mayBegin(connection, request)) return false
      const added = { request, response, begin }
      connection.waiting ??= []
      connection.waiting.push(added)
      countStrangers(connection, 1)
      // Node's session bounds the streams of HTTP/2; those that their client has given up are let go.
      if (isHttp2(request)) connection.waiting = connection.waiting.filter(isWanted)
      else boundWaiting(connection, added)
      return true
    },
    /** Begins what may begin once a request is answered, and reads on where few enough wait. */
    resume: (connection: Connection): void => {
      next(connection)
      if (!connection.isEnding && (connection.waiting?.length ?? 0) < maxWaiting) readOn(connection)
    },
    /** Drops the waiting requests. */
    drop,
    /** Call before a connection is known for its good key. */
    authenticated: (connection: Connection): void =>
      countStrangers(connection, -(connection.waiting?.length ?? 0)),
  }
}

const pause = (connection: Connection, { socket }: IncomingMessage): void => {
  if (connection.paused) return
  connection.paused = socket
  // Node resumes after each request that it still had.
  socket.on('resume', socket.pause)
  socket.pause()
}
const readOn = (connection: Connection): void => {
  const { paused } = connection
  if (!paused) return
  connection.paused = undefined
  paused.off('resume', paused.pause)
  paused.resume()
}
/** Its key is being looked up. */
const mayHaveGoodKey = ({ refusals, keyMemo }: Connection): boolean =>
  refusals === 0 && keyMemo.presented !== undefined
const isWanted = ({ response }: Waiting): boolean =>
  isHttp2(response) ? !response.stream.destroyed : !response.destroyed
/** Over HTTP/2 a few lists and everything else; otherwise one large response or a few small ones. */
const mayBegin = ({ lists, requests }: Connection, request: IncomingMessage): boolean =>
  isHttp2(request)
    ? lists < maxListsBegun || !mayBeList.test(request.url)
    : requests === 0 || (lists === 0 && requests < maxBegun && small.test(request.url ?? ''))
