// What HTTP/2 has apart from HTTP/1.1: requests lack the header `host` and may have any method; responses go to the stream itself.

import type { IncomingMessage } from 'node:http'
import type {
  Http2ServerRequest,
  Http2ServerResponse,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Chunks, WriteReady } from './connection.ts'
import { isHttp2 } from './connection.ts'

const { METHODS } = process.getBuiltinModule('node:http')
const methods: ReadonlySet<string> = new Set(METHODS)

/**
 * A request as Fastify and the API read it. Node's own is a second stream with a dozen listeners, for bodies that nobody reads here;
 * it and its response cost as much as all the rest.
 */
class StreamRequest {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly method: string
  readonly httpVersion = '2.0'
  readonly httpVersionMajor = 2
  readonly httpVersionMinor = 0
  url: string

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.stream = stream
    this.headers = headers
    const method = headers[':method'] ?? ''
    // Any word is a method of HTTP/2. The router gets one that the API refuses too.
    this.method = methods.has(method) ? method : 'POST'
    this.url = headers[':path'] ?? ''
  }

  /** Without an address where the client is gone. */
  get socket(): Pick<Socket, 'remoteAddress' | 'remotePort'> {
    return this.stream.session?.socket ?? gone
  }
}

const gone = { remoteAddress: undefined, remotePort: undefined }

type OnClose = (this: StreamResponse) => void

/** The response to it: only its close is told. */
class StreamResponse {
  readonly stream: ServerHttp2Stream
  statusCode = 200

  constructor(stream: ServerHttp2Stream) {
    this.stream = stream
    // A stream that its client resets fails; its close is told as well.
    stream.on('error', ignore)
  }

  on(_close: 'close', listener: OnClose): void {
    this.stream.on('close', () => listener.call(this))
  }
}

const ignore = (): void => {}

/** The options of a server for HTTP/2 beside those of TLS. */
export const http2Options = (maxHeaderBytes: number) => ({
  allowHTTP1: true,
  Http2ServerRequest: StreamRequest as unknown as typeof Http2ServerRequest,
  Http2ServerResponse: StreamResponse as unknown as typeof Http2ServerResponse,
  settings: {
    // What RFC 9113 recommends at the least. With fewer, clients fail that send many before they have read the limit.
    maxConcurrentStreams: 100,
    maxHeaderListSize: maxHeaderBytes,
  },
})

/** Gives a request what the API reads of one over HTTP/1.1. */
export const asHttp1 = (request: Http2ServerRequest): void => {
  const { headers } = request
  const { host, ':authority': authority } = headers
  // Two that name different hosts are malformed, as two host headers are.
  if (authority !== undefined)
    headers.host = host === undefined || isSameHost(host, authority) ? authority : `${host}, ${authority}`
}

/** The method of a request, as its client sent it. */
export const methodOf = ({ method = '', headers }: Pick<IncomingMessage, 'method' | 'headers'>): string =>
  (headers[':method'] as string | undefined) ?? method

// RFC 9113, 8.3.1: they are compared without regard to case and to the port that is https's own.
const isSameHost = (one: string, other: string): boolean =>
  one === other || normalHost(one) === normalHost(other)
const normalHost = (host: string): string => host.toLowerCase().replace(/:(?:443)?$/, '')

/** The writer for a listener that speaks both versions. @param write for HTTP/1.1 */
export const writerOfBoth =
  (write: WriteReady): WriteReady =>
  (response, status, head, own, connection, body) => {
    if (isHttp2(response)) writeToStream(response, status, head, own, body)
    else write(response, status, head, own, connection, body)
  }

// RFC 9113, 7.
const refusedStream = 7

/** Refuses a request so that its client may send it on another connection. */
export const refuseStream = ({ stream }: Http2ServerResponse): void => stream.close(refusedStream)

const endOfStream = { endStream: true }

// To the stream itself: the compatibility API would send an empty frame for trailers after each body.
const writeToStream = (
  response: Http2ServerResponse,
  status: number,
  head: string,
  own: readonly string[],
  body: Chunks | undefined,
): void => {
  const { stream } = response
  if (stream.headersSent) return
  response.statusCode = status
  if (stream.destroyed || stream.closed) return
  const headers = listOf(status, head).slice()
  addLines(headers, own.join(''), 0)
  // To a HEAD Node ends the stream by itself.
  stream.respond(headers, body ? undefined : endOfStream)
  // They are encoded, and the stream keeps the list until old objects are collected.
  headers.length = 0
  if (!body || stream.writableEnded) return
  // All chunks go out in one write, and none is copied.
  stream.cork()
  const last = body.length - 1
  for (let at = 0; at < last; at++) stream.write(body[at])
  stream.end(body[last])
}

// The heads of the bodies that are requested again and again.
const lists = new LRUCache<string, string[]>({ max: 2_000 })

/** Names and values of a head, which connection.ts has as text, in turn. */
const listOf = (status: number, head: string): string[] => {
  let list = lists.get(head)
  if (!list) {
    list = [':status', String(status)]
    addLines(list, head, head.indexOf('\r\n') + 2)
    lists.set(head, list)
  }
  return list
}

/** Adds names and values in turn. Only `vary` may come twice, from the body and from CORS, and is joined. */
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
