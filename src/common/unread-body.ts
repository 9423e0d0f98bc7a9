// Bodies of HTTP/1.1 requests that nobody reads. The connection ends behind the answer, by a lingering close: a reset would take the
// answer from a client that still sends.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// So long a client may send on.
const sendOnMs = 2_000

/**
 * Whether the connection ends with the answer: the request has a body that nobody reads, or it offers to upgrade. Such an offer is
 * ignored, and Node's parser loses what follows it.
 */
export const isLast = ({ headers }: IncomingMessage): boolean => {
  const { 'content-length': length, 'transfer-encoding': coding, upgrade } = headers
  return coding !== undefined || upgrade !== undefined || (length !== undefined && length !== '0')
}

/** Ends the connection behind the answer to a request. Called before anything is written. */
export const endBehind = (request: IncomingMessage, response: ServerResponse): void => {
  const { socket } = request
  const endNow = socket.destroySoon.bind(socket)
  response.shouldKeepAlive = false
  // Node calls it behind the last answer of a connection.
  socket.destroySoon = () => {
    socket.end()
    // Requests that the client sends on behind this one are a reason for a reset, too.
    socket.once('end', endNow)
    const patience = setTimeout(endNow, sendOnMs).unref()
    socket.once('close', () => clearTimeout(patience))
  }
}

const ended = new WeakSet<Socket>()

/** Ends a connection with these bytes, where there is no response to write them to. */
export const endWith = (socket: Socket, bytes: Buffer | string): void => {
  ended.add(socket)
  socket.end(bytes)
  const patience = setTimeout(() => socket.destroy(), sendOnMs).unref()
  socket.once('close', () => clearTimeout(patience))
}

/** Whether a connection was ended so. What its client sends on reaches Node's parser, which refuses each piece of it. */
export const wasEnded = (socket: Socket): boolean => ended.has(socket)

/** Whether Node's parser, or its watch over times, refuses what came; else the connection itself has failed. */
export const isOfParser = (code = ''): boolean =>
  code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'
