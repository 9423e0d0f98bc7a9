// Responses of HTTP/2: a plain object over a stream, to which a ready response is written, its head as names and values and its body
// in one write.

import type { Http2ServerResponse, ServerHttp2Stream } from 'node:http2'
import { LRUCache } from 'lru-cache'
import type { Chunks, WriteReady } from './connection.ts'
import { isHttp2 } from './connection.ts'

type OnClose = (this: StreamResponse) => void

/** The response to a request: its close is told, and it is written to its stream. */
export class StreamResponse {
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

  get headersSent(): boolean {
    return this.stream.headersSent
  }

  /** With `end` and `destroy` the last resort of Fastify, where the error handler fails: a status alone. */
  writeHead(status: number): void {
    const { stream } = this
    if (!stream.headersSent && !stream.destroyed && !stream.closed)
      respond(stream, [':status', String(status)])
  }

  end(): void {}

  destroy(): void {
    this.stream.destroy()
  }
}

const ignore = (): void => {}

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

/** Sends a head that ends the response. */
const respond = (stream: ServerHttp2Stream, headers: string[]): void => {
  stream.respond(headers, endOfStream)
  headers.length = 0
  // Node leaves a HEAD open until its client ends its side too.
  if (!stream.endAfterHeaders) setImmediate(() => stream.close())
}

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
  // To a HEAD Node has ended its side already.
  if (!body || stream.writableEnded) {
    respond(stream, headers)
    return
  }
  stream.respond(headers)
  // They are encoded, and the stream keeps the list until old objects are collected.
  headers.length = 0
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
