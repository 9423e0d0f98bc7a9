// Sends a body: its ETag, a 304 when the consumer has it already, br or gzip when it accepts them. What the body says and how
// it is compressed is decided elsewhere; how ready bytes are written, in connection/ready-response.ts.

import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { flatText } from '../telemetry/access-log.ts'
import { rateLimitLines, rateLimitOf } from './admission.ts'
import { type Chunks, headOf, lengthOf, type WriteReady } from './connection/ready-response.ts'
import { acceptedOf, type Coding, type Encode, type Encoded } from './content-coding.ts'

export const jsonType = 'application/json; charset=utf-8'

/** A body for a GET or HEAD, with what goes before it. */
export type Representation = {
  /** The tag of its bytes; see `tagOf`. */
  readonly tag: string
  /** JSON unless given. */
  readonly type?: string
  /** Header lines of a 200 and a 304 alike. */
  readonly headers: string
  /** The request headers that it depends on; the encoding and the key unless given. */
  readonly vary?: string
  readonly chunks: Chunks
  readonly encode: Encode
  /** The cache result as in `cache-status`, for answers with weather. */
  readonly cache?: string
  /** The cell of that weather. */
  readonly cell?: string
}

// 132 bits: two bodies of one tag can't be found on purpose.
const tagLength = 22

/** A name for bytes in an ETag: the same for the same bytes, another for others. Nothing is looked up by it. */
export const tagOf = (bytes: Buffer): string => hash('sha256', bytes, 'base64url').slice(0, tagLength)

/** The response to a request: a 304 without a body, or a 200 in one of its encodings. */
type Selected = {
  readonly status: 200 | 304
  readonly head: string
  readonly body: Chunks | undefined
  readonly coding: Coding | undefined
}

type Conditions = Readonly<Pick<IncomingHttpHeaders, 'if-none-match' | 'accept-encoding'>>

/** The response to a request with these headers; a promise where an encoding has to be made first. */
const select = (representation: Representation, headers: Conditions): Selected | Promise<Selected> => {
  const { tag, chunks } = representation
  const { 'if-none-match': ifNoneMatch, 'accept-encoding': acceptEncoding } = headers
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, tag))
    return { status: 304, head: headOf(304, linesOf(representation)), body: undefined, coding: undefined }
  const accepted = acceptEncoding === undefined ? undefined : acceptedOf(acceptEncoding, lengthOf(chunks))
  if (!accepted) return whole(representation, chunks, undefined)
  const encoded = representation.encode(accepted)
  if (!encoded) return whole(representation, chunks, undefined)
  const inCoding = ({ coding, chunks: body }: Encoded): Selected => whole(representation, body, coding)
  return encoded instanceof Promise ? encoded.then(inCoding) : inCoding(encoded)
}

const whole = (representation: Representation, body: Chunks, coding: Coding | undefined): Selected => ({
  status: 200,
  head: `${beginningOf(representation.type, coding)}content-length: ${lengthOf(body)}\r\n${linesOf(representation)}`,
  body,
  coding,
})

const beginning = (type: string, coding: Coding | undefined): string =>
  headOf(200, `content-type: ${type}\r\n${coding === undefined ? '' : `content-encoding: ${coding}\r\n`}`)
const ofJson = {
  identity: flatText(beginning(jsonType, undefined)),
  br: flatText(beginning(jsonType, 'br')),
  gzip: flatText(beginning(jsonType, 'gzip')),
}
const beginningOf = (type: string | undefined, coding: Coding | undefined): string =>
  type === undefined ? ofJson[coding ?? 'identity'] : beginning(type, coding)

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
  connectionLinesOf: (reply: FastifyReply) => string,
  corsLines: CorsLines,
): Send => {
  const writeSelected = (
    { id, state, raw }: FastifyRequest,
    reply: FastifyReply,
    { status, head, body, coding }: Selected,
  ): void => {
    state.bytes = body && raw.method !== 'HEAD' ? lengthOf(body) : 0
    state.encoding = coding
    const perResponse = `${rateLimitLines(rateLimitOf(state))}${corsLines(raw.headers)}x-request-id: ${id}\r\ndate: ${dateOf()}\r\n`
    reply.hijack()
    write(reply.raw, status, head, perResponse, connectionLinesOf(reply), body)
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
// The key is named, because a browser keeps a response for all of its pages and users: the next key may be none, or used up.
const linesOf = ({
  headers,
  tag,
  vary = 'accept-encoding, x-api-key',
}: Pick<Representation, 'headers' | 'tag' | 'vary'>): string =>
  `${headers}etag: W/"${tag}"\r\nvary: ${vary}\r\n`

// Weak comparison, as RFC 9110 requires here: `W/` does not count.
const matches = (ifNoneMatch: string, tag: string): boolean =>
  ifNoneMatch.trim() === '*' || (ifNoneMatch.match(/"[^"]*"/g)?.includes(`"${tag}"`) ?? false)
