// Writes responses whose bytes are ready: a head joined from cached text, and the chunks of a body. The API hijacks Fastify's
// reply for them, because sending a hit header by header costs as much as the rest of it. Errors go through Fastify.
//
// Over HTTP/2 they go to the stream itself, which takes a list of headers.
//
// The head is set in the private fields in which Node keeps one that it wrote itself. At the start of the process the bytes are
// compared with those of `writeHead`; where they differ, `writeHead` is used instead.

import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { isHttp2 } from './http2.ts'

// An import would load Node's client for fetch too, a twentieth of a start.
const http = process.getBuiltinModule('node:http')

/** The bytes of a body, in their order. */
export type Chunks = readonly [Buffer, ...Buffer[]]

export const lengthOf = (chunks: Chunks): number => {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  return length
}

export type ReadyStatus = 200 | 304

/**
 * Writes a whole response. A head must hold no value from outside, because it is not checked again.
 * @param head status line and headers that stay the same, each with its CRLF, as `headOf` makes them
 * @param own per-response headers, each with its CRLF
 * @param connection the headers of the connection with the line that ends a head: `keptLines`, or `closedLines` for its last response
 */
export type WriteReady = (
  response: ServerResponse,
  status: ReadyStatus,
  head: string,
  own: string,
  connection: string,
  body?: Chunks,
) => void

/** The status line and headers of a response. */
export const headOf = (status: ReadyStatus, headers: string): string =>
  `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${headers}`

/** The headers of a connection that may be idle for so long before its next request, whole seconds of it. */
export const keptFields = (keepAliveTimeoutMs: number): Record<string, string> => ({
  connection: 'keep-alive',
  'keep-alive': `timeout=${Math.floor(keepAliveTimeoutMs / 1000)}`,
})
/** Those of a connection that ends. */
export const closedFields: Record<string, string> = { connection: 'close' }
const linesOf = (fields: Record<string, string>): string =>
  `${Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
/** The same as text, with the empty line that ends a head. */
export const keptLines = (keepAliveTimeoutMs: number): string => linesOf(keptFields(keepAliveTimeoutMs))
export const closedLines = linesOf(closedFields)

/** The private fields of a head that Node has written; `writeHead` sets the same. */
type WithHead = ServerResponse & {
  _header: string
  _headerSent: boolean
  _last: boolean
  _hasBody: boolean
}

// Responses that the kernel takes at once are joined in this block, one after the other. With TLS, or a client that has not
// read what came before, the bytes are needed later: those responses have a buffer of their own.
const blockBytes = 64 * 1024
let block = Buffer.allocUnsafeSlow(blockBytes)

/** Through Node's private fields. */
export const writeDirectly: WriteReady = (given, status, head, perResponse, connection, body) => {
  const response = given as WithHead
  if (response._header) return
  response.statusCode = status
  if (response.destroyed) return
  // Node has set it where the client has ended its side.
  if (connection === closedLines) response._last = true
  const lines = head + perResponse + connection
  response._header = lines
  if (status === 304) response._hasBody = false
  if (!body || !response._hasBody) {
    response.end()
    return
  }
  response._headerSent = true
  const length = lines.length + lengthOf(body)
  const { socket } = response
  const isShared =
    socket !== null && !('encrypted' in socket) && socket.writableLength === 0 && length <= blockBytes
  const bytes = isShared ? block : Buffer.allocUnsafe(length)
  let used = bytes.write(lines, 0, 'latin1')
  for (const chunk of body) {
    bytes.set(chunk, used)
    used += chunk.length
  }
  // One write of one chunk costs a system call less than a list of them.
  response.end(isShared ? block.subarray(0, length) : bytes)
  if (isShared && response.writableLength > 0) block = Buffer.allocUnsafeSlow(blockBytes)
}

/** The writer for a listener that speaks both versions. @param write for HTTP/1.1 */
export const writerOfBoth =
  (write: WriteReady): WriteReady =>
  (response, status, head, own, connection, body) => {
    if (isHttp2(response)) writeToStream(response, status, head, own, body)
    else write(response, status, head, own, connection, body)
  }

const endOfStream = { endStream: true }

const writeToStream = (
  response: Http2ServerResponse,
  status: ReadyStatus,
  head: string,
  own: string,
  body: Chunks | undefined,
): void => {
  const { stream } = response
  if (stream.headersSent) return
  response.statusCode = status
  if (stream.destroyed || stream.closed) return
  const headers: string[] = [':status', String(status)]
  addLines(headers, head, head.indexOf('\r\n') + 2)
  addLines(headers, own, 0)
  if (response.req.method === 'HEAD') {
    // Without its own `end`, the response to a HEAD does not tell of its close.
    response.writeHead(status, headers.slice(2)).end()
    return
  }
  stream.respond(headers, body ? undefined : endOfStream)
  if (body) stream.end(body.length === 1 ? body[0] : Buffer.concat(body, lengthOf(body)))
}

/** Adds names and values in turn. Values of one name are one list, which `vary` alone may have: of the body, and of CORS. */
const addLines = (headers: string[], lines: string, from: number): void => {
  let at = from
  for (;;) {
    const colon = lines.indexOf(': ', at)
    if (colon < 0) return
    const end = lines.indexOf('\r\n', colon)
    const name = lines.slice(at, colon)
    const value = lines.slice(colon + 2, end)
    const known = name === 'vary' ? headers.indexOf(name) : -1
    if (known < 0) headers.push(name, value)
    else headers[known + 1] += `, ${value}`
    at = end + 2
  }
}

/** Through public API alone. */
export const writeByWriteHead: WriteReady = (response, status, head, perResponse, connection, body) => {
  if (response.headersSent) return
  response.statusCode = status
  if (response.destroyed) return
  const lines = `${head}${perResponse}${connection}`.split('\r\n').slice(1, -2)
  response.writeHead(
    status,
    lines.flatMap(line => {
      const colon = line.indexOf(': ')
      return [line.slice(0, colon), line.slice(colon + 2)]
    }),
  )
  for (const chunk of body ?? []) response.write(chunk)
  response.end()
}

/** The direct writer where both write the same bytes, else the public one, with the reason. */
export const chooseWriter = (direct: WriteReady = writeDirectly): { write: WriteReady; fault?: string } => {
  try {
    for (const { method, status, connection, body } of samples) {
      const head = headOf(status, 'content-type: text/plain\r\ncontent-length: 4\r\n')
      const own = `date: ${new Date(0).toUTCString()}\r\n`
      const [one, other] = [direct, writeByWriteHead].map(write =>
        bytesOf(method, response => write(response, status, head, own, connection, body)),
      )
      if (one !== other)
        return { write: writeByWriteHead, fault: `the bytes of a ${status} to ${method} differ` }
    }
    return { write: direct }
  } catch (error) {
    return { write: writeByWriteHead, fault: String(error) }
  }
}

const kept = keptLines(1_000)
const samples: readonly { method: string; status: ReadyStatus; connection: string; body?: Chunks }[] = [
  { method: 'GET', status: 200, connection: kept, body: [Buffer.from('body')] },
  { method: 'GET', status: 200, connection: closedLines, body: [Buffer.from('bo'), Buffer.from('dy')] },
  { method: 'HEAD', status: 200, connection: kept, body: [Buffer.from('body')] },
  { method: 'GET', status: 304, connection: kept },
]

/** The bytes that a response writes to its connection, and whether the connection stays. */
const bytesOf = (method: string, write: (response: ServerResponse) => void): string => {
  const chunks: Buffer[] = []
  const socket = new Duplex({
    read: () => {},
    write: (chunk, _encoding, done) => {
      chunks.push(Buffer.from(chunk))
      done()
    },
  }) as Socket
  const request = Object.assign(new http.IncomingMessage(socket), {
    method,
    httpVersionMajor: 1,
    httpVersionMinor: 1,
  })
  const response = new http.ServerResponse(request)
  response.assignSocket(socket)
  write(response)
  const { _last: last } = response as WithHead
  return `${Buffer.concat(chunks).toString('latin1')}\n${last ? 'ends' : 'stays'}, ${response.writableEnded}`
}
