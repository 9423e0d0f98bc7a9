// Requests of HTTP/2 as Fastify and the API read them: plain objects over a stream, with what the API reads of one over HTTP/1.1, and
// the options of their server. Responses are in http2-response.ts.

import type { IncomingMessage } from 'node:http'
import type {
  Http2ServerRequest,
  Http2ServerResponse,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { StreamResponse } from './http2-response.ts'

const { METHODS } = process.getBuiltinModule('node:http')
const methods: ReadonlySet<string> = new Set(METHODS)

/** Node's own is a second stream with a dozen listeners, for bodies that nobody reads here; it and its response cost an eighth more. */
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

// It came over TLS, so it was no plain HTTP.
const gone = { remoteAddress: undefined, remotePort: undefined, encrypted: true }

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
