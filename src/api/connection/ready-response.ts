// Writes responses whose bytes are ready: a head joined from cached text, and the chunks of a body. The API hijacks Fastify's
// reply for them, because sending a hit header by header costs as much as the rest of it.
//
// The head is set in the private fields in which Node keeps one that it wrote itself. At the start of the process the bytes are
// compared with those of `writeHead` (choose-writer.ts), which is used where they differ. http2.ts writes to streams.

import type { ServerResponse } from 'node:http'
import { putText } from '../../common/flat-text.ts'

// An import would load Node's client for fetch too, a twentieth of a start.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

/** The bytes of a body, in their order. */
export type Chunks = readonly [Buffer, ...Buffer[]]

export const lengthOf = (chunks: Chunks): number => {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  return length
}

/**
 * Writes a whole response. A head must hold no value from outside, because it is not checked again.
 * @param head status line and headers that stay the same, each with its CRLF, as `headOf` makes them
 * @param own per-response headers, each with its CRLF, as parts that are joined; another call may bring the same list
 * @param connection the headers of the connection with the line that ends a head: `keptLines`, or `closedLines` for its last response
 */
export type WriteReady = (
  response: ServerResponse,
  status: number,
  head: string,
  own: readonly string[],
  connection: string,
  body?: Chunks,
) => void

/** The status line and headers of a response. */
export const headOf = (status: number, headers: string): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers}`

/** The headers of a connection that may be idle for so long before its next request, with the empty line that ends a head. */
export const keptLines = (keepAliveTimeoutMs: number): string =>
  `connection: keep-alive\r\nkeep-alive: timeout=${Math.floor(keepAliveTimeoutMs / 1000)}\r\n\r\n`
/** Those of a connection that ends. */
export const closedLines = 'connection: close\r\n\r\n'

/** The private fields of a head that Node has written; `writeHead` sets the same. */
export type WithHead = ServerResponse & {
  _header: string
  _headerSent: boolean
  _last: boolean
  _hasBody: boolean
}

// Responses that the kernel takes at once are joined in a block, one after the other; those of many places in a large one. With
// TLS, or a client that has not read what came before, the bytes are needed later: those responses have a buffer of their own.
const blockBytes = 64 * 1024
const largeBytes = 512 * 1024
let block: Buffer | undefined
let large: Buffer | undefined
const blockFor = (length: number): Buffer | undefined => {
  if (length <= blockBytes) {
    block ??= Buffer.allocUnsafeSlow(blockBytes)
    return block
  }
  if (length > largeBytes) return undefined
  large ??= Buffer.allocUnsafeSlow(largeBytes)
  return large
}

/** Through Node's private fields. */
export const writeDirectly: WriteReady = (given, status, head, own, connection, body) => {
  const response = given as WithHead
  if (response._header) return
  response.statusCode = status
  if (response.destroyed) return
  // Node has set it where the client has ended its side.
  if (connection === closedLines) response._last = true
  if (!body || !response._hasBody) {
    response._header = head + own.join('') + connection
    response._hasBody = false
    response.end()
    return
  }
  // Only that there is one matters from here on. Joining all of it would copy what stays the same.
  response._header = head
  response._headerSent = true
  let length = head.length + connection.length + lengthOf(body)
  for (const part of own) length += part.length
  const { socket } = response
  const isTaken = socket !== null && !('encrypted' in socket) && socket.writableLength === 0
  const shared = isTaken ? blockFor(length) : undefined
  const bytes = shared ?? Buffer.allocUnsafe(length)
  let used = putText(bytes, 0, head)
  for (const part of own) used = putText(bytes, used, part)
  used = putText(bytes, used, connection)
  for (const chunk of body) {
    bytes.set(chunk, used)
    used += chunk.length
  }
  // One write of one chunk costs a system call less than a list of them.
  response.end(shared ? shared.subarray(0, length) : bytes)
  if (!shared || response.writableLength === 0) return
  if (shared === block) block = undefined
  else large = undefined
}
