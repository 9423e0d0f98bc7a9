// How a connection of HTTP/1.1 is closed without losing an answer: a lingering close, because a reset would take the answer from a
// client that still sends; and no parsing of what comes after the last request.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// How long a client may still send after the answer.
const sendOnMs = 2_000

/**
 * Whether the connection must close after the answer: the request has a body that nobody reads, or it offers to upgrade. Such an
 * offer is ignored, and Node's parser loses what follows it.
 */
export const mustClose = ({ headers }: IncomingMessage): boolean => {
  const { 'content-length': length, 'transfer-encoding': coding, upgrade } = headers
  return coding !== undefined || upgrade !== undefined || (length !== undefined && length !== '0')
}

/** Closes the connection after the answer to a request. Call before anything is written. */
export const closeAfterResponse = ({ socket }: IncomingMessage, response: ServerResponse): void => {
  const closeNow = socket.destroySoon.bind(socket)
  response.shouldKeepAlive = false
  // Node calls it after the last answer of a connection.
  socket.destroySoon = () => {
    socket.end()
    // Later requests of the client are a reason for a reset, too.
    socket.once('end', closeNow)
    closeLater(socket, closeNow)
  }
}

const ended = new WeakSet<Socket>()

/** Ends a connection with these bytes, where there is no response to write them to. */
export const endSocket = (socket: Socket, bytes: Buffer | string): void => {
  ended.add(socket)
  socket.end(bytes)
  closeLater(socket, () => socket.destroy())
}

const closeLater = (socket: Socket, close: () => void): void => {
  const timer = setTimeout(close, sendOnMs).unref()
  socket.once('close', () => clearTimeout(timer))
}

/** Whether `endSocket` ended it. Node's parser refuses each piece of what the client still sends. */
export const wasEnded = (socket: Socket): boolean => ended.has(socket)

/** Whether Node's parser or its timeouts refuse what came; else the connection itself has failed. */
export const isParserError = (code = ''): boolean =>
  code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'

/** What Node calls with each head; it is not documented. */
type Parsed = { readonly parser?: { onIncoming: () => number } | null }

// Tells llhttp that another protocol follows, so that it parses no further.
const otherProtocol = () => 2

/**
 * Makes no request of what comes on a connection from now on. Node parses all of a read of 64 KiB, 2,500 of the smallest requests,
 * although the socket was paused or destroyed: milliseconds, and megabytes until the socket closes.
 */
export const stopParsing = ({ parser }: Socket & Parsed): void => {
  if (parser) parser.onIncoming = otherProtocol
}
