// Sends a body: its ETag, a 304 when the consumer has it already, br or gzip when it accepts them. An encoding that was
// made once is kept as long as the body is. What the body says is decided elsewhere; how ready bytes are written, in
// ready-response.ts.

import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import Negotiator from 'negotiator'
import { rateLimitLines, rateLimitOf } from './admission.ts'
import { headOf, type Pieces, type WriteReady } from './ready-response.ts'
import { unpooledCopy, unpooledText } from './unpooled.ts'

export const jsonType = 'application/json; charset=utf-8'

/** A body for a GET or HEAD, with what goes before it. */
export type Representation = {
  /** What its bytes are called; see `tagOf`. */
  readonly tag: string
  /** JSON unless given. */
  readonly type?: string
  /** Header lines of a 200 and a 304 alike. */
  readonly headers: string
  readonly pieces: Pieces
  /** Starts of responses that were put together before, by coding; begins empty. Bytes from the second time on. */
  readonly heads: { [coding in Coding | 'identity']?: string | Buffer }
  /** The encodings of these bytes that were made before; called when a consumer accepts one. */
  readonly encodings: () => Encodings
  /** Is called with an encoding that was made and is kept. */
  readonly onEncoded?: (encoded: Buffer) => void
  /** What the cache did, in the words of `cache-status`, for answers with weather. */
  readonly cache?: string
  /** The cell of that weather. */
  readonly cell?: string
}

export type Coding = 'br' | 'gzip'
/** By content coding: ready, or still being made. */
export type Encodings = { [coding in Coding]?: Buffer | Promise<Buffer> }

// 132 bits: two bodies of one tag can't be found on purpose.
const tagLength = 22

/** A name for bytes in an ETag: the same for the same bytes, another for others. Nothing is looked up by it. */
export const tagOf = (bytes: Buffer): string => hash('sha256', bytes, 'base64url').slice(0, tagLength)

/** What goes out for a request: a 304 without a body, or a 200 in one of its encodings. */
type Selected =
  | { readonly status: 304; readonly head: string; readonly body: undefined; readonly coding: undefined }
  | {
      readonly status: 200
      readonly head: string | Buffer
      readonly body: Pieces
      readonly coding: Coding | undefined
    }

type Conditions = Readonly<Pick<IncomingHttpHeaders, 'if-none-match' | 'accept-encoding'>>

/** The response to a request with these headers; a promise where an encoding has to be made first. */
const select = (representation: Representation, headers: Conditions): Selected | Promise<Selected> => {
  const { tag, pieces } = representation
  const { 'if-none-match': ifNoneMatch, 'accept-encoding': acceptEncoding } = headers
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, `"${tag}"`))
    return { status: 304, head: headOf(304, linesOf(representation)), body: undefined, coding: undefined }
  const coding = acceptEncoding === undefined ? undefined : codingFor(acceptEncoding, bytesOf(pieces))
  if (coding === undefined)
    return { status: 200, head: readyHead(representation, 'identity', pieces), body: pieces, coding }
  const encodings = representation.encodings()
  const encoded = encodings[coding] ?? encode(coding, encodings, representation)
  const compressed = (bytes: Buffer): Selected => ({
    status: 200,
    head: readyHead(representation, coding, [bytes]),
    body: [bytes],
    coding,
  })
  return encoded instanceof Promise ? encoded.then(compressed) : compressed(encoded)
}

type Send = (
  request: FastifyRequest,
  reply: FastifyReply,
  representation: Representation,
) => void | Promise<void>

/** The header lines that let a web page read a response to a request with these headers; empty where none may. */
export type CorsLines = (headers: Readonly<Pick<IncomingHttpHeaders, 'origin'>>) => string

/** Sends representations; a promise where an encoding has to be made first. */
export const createSend = (
  write: WriteReady,
  dateOf: () => string,
  staysAfter: (reply: FastifyReply) => boolean,
  corsLines: CorsLines,
): Send => {
  const writeSelected = (
    { id, state, raw }: FastifyRequest,
    reply: FastifyReply,
    { status, head, body, coding }: Selected,
  ): void => {
    if (body && raw.method !== 'HEAD') state.bytes = bytesOf(body)
    state.encoding = coding
    const perResponse = `${rateLimitLines(rateLimitOf(state))}${corsLines(raw.headers)}x-request-id: ${id}\r\ndate: ${dateOf()}\r\n`
    reply.hijack()
    write(reply.raw, status, head, perResponse, staysAfter(reply), body)
  }

  return (request, reply, representation) => {
    request.state.cache = representation.cache
    request.state.cell = representation.cell
    const selected = select(representation, request.raw.headers)
    if (selected instanceof Promise) return selected.then(late => writeSelected(request, reply, late))
    writeSelected(request, reply, selected)
  }
}

// Weak, because one tag stands for the plain and the compressed encodings of the same body.
const linesOf = ({ headers, tag }: Pick<Representation, 'headers' | 'tag'>): string =>
  `${headers}etag: W/"${tag}"\r\nvary: accept-encoding\r\n`

const readyHead = (
  representation: Representation,
  coding: Coding | 'identity',
  body: Pieces,
): string | Buffer => {
  const { heads, type = jsonType } = representation
  const before = heads[coding]
  if (typeof before === 'object') return before
  const start =
    before === undefined
      ? headOf(
          200,
          `content-type: ${type}\r\ncontent-length: ${bytesOf(body)}\r\n${codingLines[coding]}${linesOf(representation)}`,
        )
      : unpooledText(before, 'latin1')
  heads[coding] = start
  return start
}

// Below this a compressed body saves no packet.
const worthCompressingBytes = 1024
const brotli = promisify(brotliCompress)
const zip = promisify(gzip)
const encoders: Readonly<Record<Coding, (bytes: Buffer) => Promise<Buffer>>> = {
  // Quality 4 gives most of what 11 would give on this JSON, in a fraction of the time.
  br: bytes => brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: bytes => zip(bytes),
}
const codingLines: Readonly<Record<Coding | 'identity', string>> = {
  identity: '',
  br: 'content-encoding: br\r\n',
  gzip: 'content-encoding: gzip\r\n',
}

// Off the event loop, and once for all requests that come meanwhile.
const encode = (
  coding: Coding,
  encodings: Encodings,
  { pieces, onEncoded }: Pick<Representation, 'pieces' | 'onEncoded'>,
): Promise<Buffer> => {
  const making = encoders[coding](Buffer.concat(pieces)).then(
    bytes => {
      const encoded = unpooledCopy(bytes)
      encodings[coding] = encoded
      onEncoded?.(encoded)
      return encoded
    },
    error => {
      delete encodings[coding]
      throw error
    },
  )
  encodings[coding] = making
  return making
}

const bytesOf = ([first, second]: Pieces): number => first.length + (second?.length ?? 0)

type Choice = { readonly coding: Coding | undefined; readonly mayBePlain: boolean }

// Consumers send the same few lines over and over.
const choices = new LRUCache<string, Choice>({ max: 500 })
const choiceFor = (accepted: string): Choice => {
  let choice = choices.get(accepted)
  if (!choice) {
    const negotiator = new Negotiator({ headers: { 'accept-encoding': accepted } })
    const allowed = negotiator.encodings(['br', 'gzip', 'identity'], { preferred: ['br', 'gzip'] })
    const [first] = allowed
    choice = {
      coding: first === 'br' || first === 'gzip' ? first : undefined,
      mayBePlain: allowed.includes('identity'),
    }
    choices.set(accepted, choice)
  }
  return choice
}
/** The coding of a body for this `accept-encoding`: a small one is worth it only to someone who takes no other. */
export const codingFor = (accepted: string, bytes: number): Coding | undefined => {
  const { coding, mayBePlain } = choiceFor(accepted)
  return bytes < worthCompressingBytes && mayBePlain ? undefined : coding
}

// Weak comparison, as RFC 9110 requires here: `W/` does not count.
const matches = (ifNoneMatch: string, tag: string): boolean =>
  ifNoneMatch.trim() === '*' || (ifNoneMatch.match(/"[^"]*"/g)?.includes(tag) ?? false)
