// The request and the response of one stream of HTTP/2, as far as Fastify and the API use them. Those of Node's compatibility API
// are streams of their own with a dozen listeners, and end each response with a frame for trailers that nobody sends.

import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { type Chunks, lengthOf, type ReadyStatus } from './ready-response.ts'

export class Http2Request {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  /** That of the connection; it stays when the session has ended. */
  readonly socket: Socket
  method: string
  url: string
  /** Set by Fastify where it routes by another URL. */
  originalUrl: string | undefined

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, socket: Socket) {
    const { host, ':authority': authority, ':method': method = '', ':path': path = '' } = headers
    // Two that name different hosts are malformed, as two host headers are.
    if (authority !== undefined)
      headers.host = host === undefined || isSameHost(host, authority) ? authority : `${host}, ${authority}`
    this.stream = stream
    this.headers = headers
    this.socket = socket
    this.method = method
    this.url = path
    this.originalUrl = undefined
  }

  get httpVersion(): string {
    return '2.0'
  }

  get httpVersionMajor(): number {
    return 2
  }

  /** Nothing more will come of it. */
  get complete(): boolean {
    const { stream } = this
    return stream.aborted || stream.readableEnded || stream.closed || stream.destroyed
  }
}

// RFC 9113, 8.3.1: they are compared without regard to case and to the port that is https's own.
const isSameHost = (one: string, other: string): boolean =>
  one === other || normalHost(one) === normalHost(other)
const normalHost = (host: string): string => host.toLowerCase().replace(/:(?:443)?$/, '')

/** The responses of a session, counted. */
export type Answering = {
  /** Those whose stream is open. */
  open: number
  /** Of these, the ones that were given to their stream as a whole. */
  ended: number
  /** One more stream is closed. */
  onClose(): void
}

export class Http2Response {
  readonly stream: ServerHttp2Stream
  statusCode = 200
  /** All of it was given to the stream. Node ends the stream of a HEAD before it has its headers. */
  writableEnded = false
  readonly #isHead: boolean
  readonly #answering: Answering
  #isOpen = true
  #onClose: (() => void) | undefined

  constructor({ stream, method }: Http2Request, answering: Answering) {
    this.stream = stream
    this.#isHead = method === 'HEAD'
    this.#answering = answering
    answering.open += 1
    // One listener that stays, because a stream tells of each that comes or goes.
    stream.on('close', () => this.#close())
  }

  #close(): void {
    this.#isOpen = false
    this.#answering.open -= 1
    if (this.writableEnded) this.#answering.ended -= 1
    this.#answering.onClose()
    this.#onClose?.()
  }

  #end(): void {
    if (this.writableEnded) return
    this.writableEnded = true
    // Of a stream that is closed already, nobody would count it down again.
    if (this.#isOpen) this.#answering.ended += 1
  }

  get headersSent(): boolean {
    return this.stream.headersSent
  }

  get destroyed(): boolean {
    return this.stream.destroyed
  }

  /** @param event `close`, for one listener, or another event of the stream */
  on(event: string, listener: () => void): this {
    if (event === 'close') this.#onClose = listener
    else this.stream.on(event, listener)
    return this
  }

  once(event: string, listener: () => void): this {
    this.stream.once(event, listener)
    return this
  }

  // Fastify keeps headers by itself until `writeHead`.
  getHeader(_name: string): undefined {}

  removeHeader(_name: string): void {}

  writeHead(status: number, headers: OutgoingHttpHeaders): this {
    const { stream } = this
    this.statusCode = status
    if (!isGone(stream)) stream.respond({ ...headers, ':status': status })
    return this
  }

  write(chunk: string | Buffer): boolean {
    const { stream } = this
    return this.#isHead || isGone(stream) || stream.write(chunk)
  }

  end(chunk?: string | Buffer | null): this {
    const { stream } = this
    this.#end()
    if (isGone(stream)) return this
    if (chunk && !this.#isHead) stream.end(chunk)
    else stream.end()
    return this
  }

  destroy(error?: Error): this {
    this.stream.destroy(error)
    return this
  }

  /** Writes a whole response. @param head and @param own as in ready-response.ts */
  writeReady(status: ReadyStatus, head: string, own: string, body: Chunks | undefined): void {
    const { stream } = this
    if (stream.headersSent) return
    this.statusCode = status
    this.#end()
    if (isGone(stream)) return
    const headers: string[] = [':status', String(status)]
    addLines(headers, head, head.indexOf('\r\n') + 2)
    addLines(headers, own, 0)
    const hasBody = body !== undefined && !this.#isHead
    stream.respond(headers, hasBody ? undefined : endOfStream)
    if (hasBody) stream.end(body.length === 1 ? body[0] : Buffer.concat(body, lengthOf(body)))
  }
}

/** Whether a request came, or a response goes out, over HTTP/2, which knows no header `connection`. */
export const isHttp2 = (given: object): given is Http2Response => 'stream' in given

const endOfStream = { endStream: true }

const isGone = ({ destroyed, closed }: ServerHttp2Stream): boolean => destroyed || closed

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
