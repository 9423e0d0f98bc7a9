// HTTP/2 for connections whose client chose it in the TLS handshake: Node's sessions, whose requests and responses look like
// those of HTTP/1.1 to the API. Bounds what one session may send. connections.ts decides which requests are taken, and which
// connections are closed.

import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { type Answering, Http2Request, Http2Response } from './http2-exchange.ts'
import type { PacedOwner, PacedReading } from './paced-reading.ts'

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

type Route = (request: Http2Request, response: Http2Response) => void

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
type Came = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void
type Marked = ServerHttp2Session & { [mark]?: Came }

// A stream that failed is closed, which is all that anybody has to know of it.
const ignore = (): void => {}

export const createHttp2 = (maxPipelined: number, route: Route): Http2 => {
  const http2 = process.getBuiltinModule('node:http2')
  const methods: ReadonlySet<string> = new Set(process.getBuiltinModule('node:http').METHODS)
  const { NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants

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
  })
  server.on('stream', (stream, headers) => {
    // None where the stream was given up before it came here.
    const session = stream.session as Marked | undefined
    session?.[mark]?.(stream as ServerHttp2Stream, headers)
  })
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
      const waiting: Http2Request[] = []
      let isPaced = true
      let isClosing = false
      let control = 0

      const leave = (): void => {
        if (answering.open === 0 && waiting.length === 0 && !session.destroyed && !session.closed)
          session.goaway(NGHTTP2_NO_ERROR, noStreamYet)
      }
      const answering: Answering = {
        open: 0,
        ended: 0,
        onClose: () => {
          if (isDraining) leave()
        },
      }
      const takeNow = (request: Http2Request): void => {
        const response = new Http2Response(request, answering)
        if (methods.has(request.method)) {
          route(request, response)
          return
        }
        // HTTP/2 allows any method. The router knows only those of HTTP/1.1, so it gets one that the API refuses.
        const { method } = request
        request.method = 'POST'
        route(request, response)
        request.method = method
      }
      session[mark] = (stream, headers) => {
        stream.on('error', ignore)
        const request = new Http2Request(stream, headers, socket)
        if (!isPaced) return takeNow(request)
        waiting.push(request)
        stream.once('close', () => {
          const at = waiting.indexOf(request)
          if (at === -1) return
          waiting.splice(at, 1)
          onTaken()
        })
        onReadable()
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
            if (next) takeNow(next)
          }
        },
        end: () => {
          if (waiting.length > 0) return false
          isPaced = false
          return true
        },
        // Nothing else reads its requests.
        readForNextParser: () => {},
        taken: () => (answering.ended > 0 ? socket.bytesWritten - control : undefined),
        close: () => {
          isClosing = true
          session.close()
        },
        refuse: () => {
          isClosing = true
          for (const { stream } of [...waiting]) stream.close(NGHTTP2_REFUSED_STREAM)
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
