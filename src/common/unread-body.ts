// Bodies of HTTP/1.1 requests that nobody reads. A short one is read past, so that the connection can be used on. Behind a
// longer one the connection ends, by a lingering close: a reset would take the answer from a client that still sends.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The longest body behind which a connection goes on. */
const maxUnreadBytes = 16 * 1024

// So much, and for so long, is taken of a client that sends on after the end of its answer.
const maxDiscardedBytes = 1024 * 1024
const lingerMs = 2_000

const lingering = new WeakSet<Socket>()

/**
 * Takes no further request from a connection, sends what is written, and waits for the client to close as well, discarding
 * what still comes: within bounds of bytes and time.
 */
export const closeLingering = (socket: Socket): void => {
  if (lingering.has(socket)) return
  lingering.add(socket)
  // A listener makes Node's HTTP read through JavaScript, where its parser can be taken away.
  socket.on('readable', () => {})
  for (const event of ['data', 'readable', 'end']) socket.removeAllListeners(event)
  let discarded = 0
  socket.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > maxDiscardedBytes) socket.pause()
  })
  socket.resume()
  socket.end(() => {
    const patience = setTimeout(() => socket.destroy(), lingerMs).unref()
    socket.once('close', () => clearTimeout(patience))
  })
}

/**
 * Ends the connection behind a body that is too long: with the answer where the length is declared, else as soon as more has
 * come. Must be called when the request comes, before anything is written.
 * @param onEnd takes no further request from the connection
 */
export const boundBody = (request: IncomingMessage, response: ServerResponse, onEnd: () => void): void => {
  const { socket, headers } = request
  const { 'content-length': length = '0', 'transfer-encoding': coding, upgrade } = headers
  if (length === '0' && coding === undefined) return
  // Node calls it behind an answer that says `connection: close`.
  socket.destroySoon = () => closeLingering(socket)
  // Node's parser loses the bytes after the body of a request that offers an upgrade.
  if (Number(length) > maxUnreadBytes || upgrade !== undefined) {
    response.shouldKeepAlive = false
    onEnd()
  } else if (coding !== undefined) boundChunks(request, response, onEnd)
}

// Until the answer is out, Node reads no more of a body than its reader takes.
const boundChunks = (request: IncomingMessage, response: ServerResponse, onEnd: () => void): void => {
  const { socket } = request
  // All bytes of the connection: the chunks of a body may be small and their extensions large.
  const consumed = () => socket.bytesRead - socket.readableLength
  // Before Node discards the rest by itself, without end.
  response.prependOnceListener('finish', () => {
    if (request.complete) return
    const before = consumed()
    request.on('data', () => {
      if (consumed() - before <= maxUnreadBytes) return
      closeLingering(socket)
      onEnd()
    })
    request.resume()
  })
}

/** Whether a request has announced a body that is not wanted: then it is not asked to send it (`expect: 100-continue`). */
export const isTooLong = ({ headers }: IncomingMessage): boolean =>
  Number(headers['content-length'] ?? 0) > maxUnreadBytes

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
    if (request.complete) return endNow()
    socket.end()
    request.once('end', endNow)
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
