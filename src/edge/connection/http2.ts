// HTTP/2 for connections whose client chose it in the TLS handshake: Node's sessions, whose requests and responses look like
// those of HTTP/1.1 to the API. Bounds what one session may send. connections.ts decides which requests are taken, and which
// connections are closed.

import type {
  Http2ServerRequest,
  Http2ServerResponse,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { PacedOwner, PacedReading } from './paced-reading.ts'
import type { WriteReady } from './ready-response.ts'

/** The HTTP/2 of one connection. While it is paced, requests wait until the owner takes them. */
export type Http2Connection = PacedReading & {
  /** Requests that wait to be taken. */
  readonly waiting: number
  /** How many bytes the client has read; undefined when no answer waits for it. */
  taken(): number | undefined
  /** Whether `close` was called. */
  readonly isClosing: boolean
  /** Takes no further request, and ends once all requests are answered. */
  close(): void
  /** The same, but requests that wait are refused. */
  refuse(): void
}

export type Http2 = {
  open(socket: TLSSocket, owner: Http2Owner): Http2Connection
  /** Asks clients to open their next connection elsewhere, as soon as nothing is under way on this one. */
  drain(): void
  /** Requests at once on connections that are opened from now on. */
  apply(maxPipelined: number): void
}

type Http2Owner = PacedOwner & {
  /** A request does not wait any more: it was taken, or its client has cancelled it. */
  readonly onTaken: () => void
}

type Route = (request: Http2ServerRequest, response: Http2ServerResponse) => void

/** With fewer, clients fail that send many requests before they have read the limit. */
const leastStreams = 100
export const streamsFor = (maxPipelined: number): number => Math.max(maxPipelined, leastStreams)

// The same limit as for HTTP/1.1.
const maxHeaderListBytes = 16 * 1024
// Bounds cancelled requests (rapid reset): so many at once, and then a second.
const resets = { streamResetBurst: 500, streamResetRate: 33 }
const maxInvalidFrames = 100
// Acknowledgements of pings and settings are not bytes of answers.
const pingBytes = 17
const settingsBytes = 9
// The highest id: no request in flight is refused.
const noStreamYet = 2 ** 31 - 1

const mark = Symbol('connection')
type Own = {
  readonly socket: TLSSocket
  came(request: Http2ServerRequest, response: Http2ServerResponse): void
}
type Marked = ServerHttp2Session & { [mark]?: Own }
const ownOf = ({ session }: ServerHttp2Stream): Own | undefined => (session as Marked | undefined)?.[mark]

export const createHttp2 = (maxPipelined: number, route: Route): Http2 => {
  const http2 = process.getBuiltinModule('node:http2')
  const methods: ReadonlySet<string> = new Set(process.getBuiltinModule('node:http').METHODS)
  const { NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants

  /** A request with the socket and the host header that one of HTTP/1.1 has. */
  class ApiRequest extends http2.Http2ServerRequest {
    readonly own: Own | undefined

    constructor(...given: ConstructorParameters<typeof http2.Http2ServerRequest>) {
      super(...given)
      const [stream, headers] = given
      this.own = ownOf(stream)
      const { host, ':authority': authority } = headers
      // Two different values are malformed, as two host headers are.
      if (authority !== undefined)
        headers.host = host === undefined || host === authority ? authority : `${host}, ${authority}`
    }
  }
  // Node's own `socket` is a proxy that loses the socket once the session has ended.
  Object.defineProperty(ApiRequest.prototype, 'socket', {
    get(this: ApiRequest) {
      return this.own?.socket
    },
  })

  const settingsFor = (pipelined: number) => ({
    maxConcurrentStreams: streamsFor(pipelined),
    maxHeaderListSize: maxHeaderListBytes,
    enablePush: false,
  })
  // It never listens; connections are passed to it.
  const server = http2.createServer({
    ...resets,
    settings: settingsFor(maxPipelined),
    maxSessionInvalidFrames: maxInvalidFrames,
    Http2ServerRequest: ApiRequest,
  })
  const take: Route = (request, response) => ownOf(request.stream)?.came(request, response)
  // CONNECT and `expect` get the answers of the API too, not Node's empty ones.
  for (const event of ['request', 'checkExpectation', 'checkContinue', 'connect']) server.on(event, take)
  let opened: Marked | undefined
  server.on('session', session => {
    opened = session
  })
  let isDraining = false
  const idle = new Set<() => void>()

  return {
    open: (socket, { mayRead, onReadable, onTaken }) => {
      server.emit('connection', socket)
      const session = opened as Marked
      opened = undefined
      const waiting: [request: Http2ServerRequest, response: Http2ServerResponse][] = []
      const answers = new Set<Http2ServerResponse>()
      let isPaced = true
      let isClosing = false
      let control = 0

      const leave = (): void => {
        if (answers.size === 0 && waiting.length === 0 && !session.destroyed && !session.closed)
          session.goaway(NGHTTP2_NO_ERROR, noStreamYet)
      }
      const takeNow: Route = (request, response) => {
        answers.add(response)
        response.once('close', () => {
          answers.delete(response)
          if (isDraining) leave()
        })
        if (methods.has(request.method)) return route(request, response)
        // HTTP/2 allows any method. The router knows only those of HTTP/1.1, so it gets one that the API refuses.
        const { method } = request
        Object.assign(request, { method: 'POST' })
        route(request, response)
        Object.assign(request, { method })
      }
      session[mark] = {
        socket,
        came: (request, response) => {
          if (!isPaced) return takeNow(request, response)
          const entry = [request, response] as [Http2ServerRequest, Http2ServerResponse]
          waiting.push(entry)
          request.stream.once('close', () => {
            const at = waiting.indexOf(entry)
            if (at === -1) return
            waiting.splice(at, 1)
            onTaken()
          })
          onReadable()
        },
      }
      session.on('ping', () => {
        control += pingBytes
      })
      session.on('remoteSettings', () => {
        control += settingsBytes
      })
      idle.add(leave)
      session.once('close', () => idle.delete(leave))

      return {
        get waiting() {
          return waiting.length
        },
        get isClosing() {
          return isClosing
        },
        resume: () => {
          while (waiting.length > 0 && !session.destroyed && mayRead()) {
            const [next] = waiting.splice(0, 1)
            onTaken()
            if (next) takeNow(...next)
          }
        },
        end: () => {
          if (waiting.length > 0) return false
          isPaced = false
          return true
        },
        // Nothing else reads its requests.
        stop: () => {},
        taken: () => {
          for (const answer of answers) if (answer.writableEnded) return socket.bytesWritten - control
          return undefined
        },
        close: () => {
          isClosing = true
          session.close()
        },
        refuse: () => {
          isClosing = true
          for (const [request] of [...waiting]) request.stream.close(NGHTTP2_REFUSED_STREAM)
          session.close()
        },
      }
    },
    drain: () => {
      isDraining = true
      for (const leave of [...idle]) leave()
    },
    apply: pipelined => server.updateSettings(settingsFor(pipelined)),
  }
}

/** Whether a request came, or a response goes out, over HTTP/2, which knows no header `connection`. */
export const isHttp2 = (given: object): given is Http2ServerResponse => 'stream' in given

/** Writes a whole response over HTTP/2. */
export const writeToStream = (
  response: Http2ServerResponse,
  ...[status, head, own, , body]: Parameters<WriteReady> extends [unknown, ...infer Rest] ? Rest : never
): void => {
  if (response.headersSent) return
  response.statusCode = status
  if (response.stream.destroyed) return
  const headers = headersOf(withoutStatusLine(head))
  for (const [name, value] of Object.entries(headersOf(own))) add(headers, name, value)
  response.writeHead(status, headers)
  if (body && response.req.method !== 'HEAD') response.end(body.length === 1 ? body[0] : Buffer.concat(body))
  else response.end()
}

const withoutStatusLine = (head: string): string => head.slice(head.indexOf('\r\n') + 2)

/** Values of lines with one name are one list. */
const add = (headers: Record<string, string>, name: string, value: string): void => {
  const before = headers[name]
  headers[name] = before === undefined ? value : `${before}, ${value}`
}

const headersOf = (lines: string): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(': ')
    if (colon > 0) add(headers, line.slice(0, colon), line.slice(colon + 2))
  }
  return headers
}
