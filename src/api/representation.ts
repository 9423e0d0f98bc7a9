// Sends what an endpoint answers: 304 where the consumer has it, br or gzip where accepted, and the headers of all responses.

import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { flatText } from '../common/flat-text.ts'
import { type Chunks, closedLines, headOf, lengthOf, type WriteReady } from './connection/connection.ts'
import { acceptedOf, type Coding } from './content-coding.ts'
import type { Cors } from './cors.ts'
import type { Endpoint, Heads, Representation } from './endpoint.ts'
import { jsonType } from './problem.ts'
import { policiesText, ratesLeft } from './rate-figures.ts'
import type { RequestState } from './request-state.ts'

/** The answer to a slug: that of the id, with a `content-location` that names it. Relative, because a proxy may add a prefix. */
export const locatedAt = (
  found: Representation,
  id: string,
  query: Readonly<Record<string, string>>,
): Representation => {
  const search = String(new URLSearchParams(query))
  const path = search === '' ? id : `${id}?${search}`
  return { ...found, fresh: `${found.fresh ?? ''}content-location: ${path}\r\n` }
}

// 132 bits: two bodies of one tag can't be found on purpose.
const tagLength = 22

/** A name for bytes in an ETag: the same for the same bytes, another for others. Nothing is looked up by it. */
export const tagOf = (bytes: Buffer): string => hash('sha256', bytes, 'base64url').slice(0, tagLength)

const headFor = (representation: Representation, coding: keyof Heads, length: number): string => {
  const { heads } = representation
  const made = heads?.[coding]
  // The gzip of a place changes at its second request.
  if (made?.length === length) return made.text
  const text = flatText(makeHead(representation, coding, length))
  if (heads) heads[coding] = { length, text }
  return text
}

const makeHead = (representation: Representation, coding: keyof Heads, length: number): string => {
  const { type = jsonType } = representation
  const encoding = coding === 'identity' ? '' : `content-encoding: ${coding}\r\n`
  const lines = linesOf(representation)
  return coding === 'none'
    ? headOf(304, lines)
    : headOf(200, `content-type: ${type}\r\n${encoding}content-length: ${length}\r\n${lines}`)
}

/** What a reload or a stop changes for the responses that follow. */
export type Live = {
  /** Undefined where no web page may read responses. */
  cors: Cors | undefined
  /** The headers of a connection that stays: `keptLines`. */
  keptLines: string
  /** The process is stopping: no connection stays. */
  isDraining: boolean
  /** Whether a request whose answer is 304 costs nothing. */
  isUnchangedFree: boolean
  /** Gives back what a 304 does not cost; undefined where it costs what a 200 does. */
  notModified: ((state: RequestState) => void) | undefined
}

/** On every response to a test key. A browser must not answer a requested test error from its cache. */
const testLines = 'x-test-data: fixed\r\nvary: x-test-error\r\n'

/**
 * Puts the header lines of limits at 2 to 6 of a list: those of the contract, and those of draft-ietf-httpapi-ratelimit-headers-11,
 * which are left out until the quota is known: at r=0 a client would wait for midnight.
 */
const putRateLimit = (
  own: string[],
  { client, remaining, resetsAt, arrivedAt, isDecided }: RequestState,
): void => {
  const seconds = Math.ceil((resetsAt - arrivedAt) / 1000)
  const lines = limitLinesOf(client?.limit ?? 0, resetsAt, seconds)
  const left = String(remaining)
  const isKnown = client !== null && isDecided
  own[2] = lines.beforeRemaining
  own[3] = left
  own[4] = isKnown ? lines.policy : '\r\n'
  own[5] = isKnown ? left : ''
  let end = isKnown ? lines.end : ''
  const rate = client?.rate
  if (isKnown && rate !== undefined) {
    own[4] = policyLines(client.limit, policiesText(rate))
    end = leftEnd(seconds, ratesLeft(rate, arrivedAt))
  }
  // ISO 8601 in UTC, as the texts of all responses.
  own[6] = client?.endsSoon === true ? `${end}x-key-expires: ${isoOf(client.endsAt as number)}\r\n` : end
}

/** The lines that all keys with a limit share, made once a second. */
const limitLinesOf = (limit: number, resetsAt: number, seconds: number): LimitLines => {
  if (resetsAt !== known.resetsAt || seconds !== known.seconds)
    known = { resetsAt, seconds, byLimit: new Map<number, LimitLines>() }
  let lines = known.byLimit.get(limit)
  if (!lines) {
    lines = makeLines(limit, resetsAt, seconds)
    known.byLimit.set(limit, lines)
  }
  return lines
}
type LimitLines = ReturnType<typeof makeLines>
let known = { resetsAt: 0, seconds: 0, byLimit: new Map<number, LimitLines>() }

/** @param more further policies, each after a comma; below, what is left of them */
const policyLines = (limit: number, more = ''): string =>
  `\r\nratelimit-policy: "daily";q=${limit};w=86400${more}\r\nratelimit: "daily";r=`
const leftEnd = (seconds: number, more = ''): string => `;t=${seconds}${more}\r\n`

/** The lines of the contract, up to the number that remains. */
export const dayLines = (limit: number, resetsAt: number): string =>
  `x-ratelimit-limit: ${limit}\r\nx-ratelimit-reset: ${Math.floor(resetsAt / 1000)}\r\nx-ratelimit-remaining: `

const makeLines = (limit: number, resetsAt: number, seconds: number) => ({
  beforeRemaining: flatText(dayLines(limit, resetsAt)),
  policy: flatText(policyLines(limit)),
  end: flatText(leftEnd(seconds)),
})

const createDateLine = (clock: Clock) => {
  let second = 0
  let dateLine = ''
  return (): string => {
    const now = Math.floor(clock.now() / 1000)
    if (now !== second) {
      second = now
      dateLine = flatText(`\r\ndate: ${new Date(now * 1000).toUTCString()}\r\n`)
    }
    return dateLine
  }
}

export type Send = ReturnType<typeof createSend>

export const createSend = (write: WriteReady, clock: Clock, live: Live) => {
  // The header lines of the response that is being sent: one list for all, and no part is joined.
  const own: string[] = []
  const dateLineOf = createDateLine(clock)
  /**
   * Sends any response: its own header lines, and those that all have.
   * @param ends whether the connection ends with it
   * @param more lines that change from one response to the next
   */
  const ready = (
    { id, state, raw }: FastifyRequest,
    reply: FastifyReply,
    status: number,
    head: string,
    body: Chunks | undefined,
    ends: boolean,
    more = '',
  ): void => {
    const response = reply.raw
    const { cors } = live
    state.bytes = body && raw.method !== 'HEAD' ? lengthOf(body) : 0
    const before = state.cost === undefined ? more : `${more}x-ratelimit-cost: ${state.cost}\r\n`
    own[0] = state.isTest ? before + testLines : before
    own[1] = cors ? cors.lines(raw.headers.origin, state.client) : ''
    putRateLimit(own, state)
    own[7] = 'x-request-id: '
    own[8] = id
    own[9] = dateLineOf()
    const stays = !ends && response.shouldKeepAlive && !live.isDraining
    reply.hijack()
    write(response, status, head, own, stays ? live.keptLines : closedLines, body)
  }
  const whole = (
    request: FastifyRequest,
    reply: FastifyReply,
    representation: Representation,
    fresh: string | undefined,
    body: Chunks,
    coding: Coding | undefined,
  ): void => {
    request.state.encoding = coding
    const head = headFor(representation, coding ?? 'identity', lengthOf(body))
    ready(request, reply, 200, head, body, false, fresh)
  }
  const unchanged = (request: FastifyRequest, reply: FastifyReply, representation: Representation): void => {
    const { state } = request
    state.cache = representation.cache
    state.cell = representation.cell
    ready(request, reply, 304, headFor(representation, 'none', 0), undefined, false, representation.fresh)
  }
  return {
    unchanged,
    /** Sends a 304 or a body in one of its encodings; a promise where that has to be made first. */
    representation: (
      request: FastifyRequest,
      reply: FastifyReply,
      representation: Representation,
    ): void | Promise<void> => {
      const { state, raw } = request
      const { tag, chunks, fresh } = representation
      const { 'if-none-match': ifNoneMatch, 'accept-encoding': acceptEncoding } = raw.headers
      state.cache = representation.cache
      state.cell = representation.cell
      if (ifNoneMatch !== undefined && matches(ifNoneMatch, tag)) {
        live.notModified?.(state)
        unchanged(request, reply, representation)
        return
      }
      const accepted = acceptEncoding === undefined ? undefined : acceptedOf(acceptEncoding, lengthOf(chunks))
      const encoded = accepted && representation.encode(accepted)
      if (encoded instanceof Promise)
        return encoded.then(late => whole(request, reply, representation, fresh, late.chunks, late.coding))
      whole(request, reply, representation, fresh, encoded?.chunks ?? chunks, encoded?.coding)
    },
    ready,
  }
}

const answerTo = ({ params, query, state }: FastifyRequest, answer: Endpoint): ReturnType<Endpoint> =>
  answer({
    params: params as Record<string, string>,
    query: query as string,
    keyId: state.client?.keyId,
  })

/** What Fastify calls for the requests of an endpoint. @param ofTest answers those of test keys */
export const handlerOf =
  (answer: Endpoint, ofTest: Endpoint, send: Send) =>
  (request: FastifyRequest, reply: FastifyReply): void | Promise<void> => {
    const { state } = request
    const known = state.unchanged?.()
    if (known) return send.unchanged(request, reply, known)
    const found = answerTo(request, state.isTest ? ofTest : answer)
    return found instanceof Promise
      ? found.then(representation => send.representation(request, reply, representation))
      : send.representation(request, reply, found)
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

/**
 * The answer to a request with `if-none-match`, where it is in memory and its tag is the one that came.
 * @param held answers only from memory, so that a consumer without units can't start a load, or other work that takes long
 */
export const unchangedOf =
  (held: Endpoint, answer: Endpoint) =>
  (request: FastifyRequest): Representation | undefined => {
    const { 'if-none-match': given = '', 'x-test-error': wanted } = request.raw.headers
    // A requested test error comes first.
    if (request.state.isTest && wanted !== undefined) return undefined
    try {
      const found = answerTo(request, held)
      if (found instanceof Promise || !matches(given, found.tag)) return undefined
      // Another read may change what it shares.
      const kept = { ...found }
      // Like any answer it is counted as demand, and starts a refresh where the cell is stale.
      const read = answerTo(request, answer)
      if (!(read instanceof Promise)) return matches(given, read.tag) ? { ...read } : undefined
      read.catch(() => {})
      return kept
    } catch {
      // Not all of it is in memory, or the request is wrong.
      return undefined
    }
  }
