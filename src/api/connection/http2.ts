// What a request of HTTP/2 lacks beside one of HTTP/1.1: the header `host`, and a method that the router knows. Sessions and
// streams are Node's.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

/** Whether a request came, or a response goes out, over HTTP/2, which knows no header `connection`. */
export const isHttp2 = <Given extends IncomingMessage | ServerResponse>(
  given: Given,
): given is Given & (Given extends IncomingMessage ? Http2ServerRequest : Http2ServerResponse) =>
  'stream' in given

const { METHODS } = process.getBuiltinModule('node:http')
const methods: ReadonlySet<string> = new Set(METHODS)

/** The options of a server for HTTP/2 beside those of TLS. */
export const http2Options = (maxHeaderBytes: number) => {
  const { Http2ServerRequest: Plain } = process.getBuiltinModule('node:http2')
  const Http2ServerRequest = class extends Plain {}
  // Any word is a method of HTTP/2. The router gets one that the API refuses too.
  Object.defineProperty(Http2ServerRequest.prototype, 'method', {
    get(this: Http2ServerRequest) {
      const method = this.headers[':method'] ?? ''
      return methods.has(method) ? method : 'POST'
    },
  })
  return {
    allowHTTP1: true,
    Http2ServerRequest,
    settings: {
      // What RFC 9113 recommends at the least. With fewer, clients fail that send many before they have read the limit.
      maxConcurrentStreams: 100,
      maxHeaderListSize: maxHeaderBytes,
    },
  }
}

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
