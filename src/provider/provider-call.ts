// One HTTP call to the provider: sends a request, gives the body of a 200 as it comes in or throws the ProviderError the
// answer stands for. Owns the connection pool, its timeouts and the bounds of what is read; what an answer means is the
// protocol's, and whether to call again the client's.

import { pipeline, type Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import type { Pool } from 'undici'
import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { garbled, ProviderError } from './errors.ts'
import { excerptOf } from './excerpt.ts'
import { leaveIf } from './leave-if.ts'
import type { CallProtocol, ProviderRequest } from './protocol.ts'

export type ProviderCallOptions = {
  /** Origin and path prefix, without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly connectTimeoutMs: number
  /** Until the head of the answer. */
  readonly timeoutMs: number
  /** Between two parts of the body. */
  readonly bodyTimeoutMs: number
  /**
   * For the whole call, what is done with each piece of the body included: a body that trickles, or takes long to
   * read, must not keep one of the few places for ever.
   */
  readonly totalTimeoutMs: number
  readonly maxConcurrent: number
}

export type ProviderCall = {
  /**
   * The unzipped bytes of a 200 as they come, each piece once it is asked for. Who reads no further ends the connection.
   * @param mayLeave asked once there is a connection, right before the request is written to it
   * @throws ProviderError, in the midst of the body too; `provider_not_asked` where it may not leave
   */
  bytes(request: ProviderRequest, mayLeave?: () => boolean): AsyncGenerator<Uint8Array>
  /** The text of a 200, whole. @throws ProviderError */
  text(request: ProviderRequest): Promise<string>
  close(): Promise<void>
}

const unzipAtOnce = 64 * 1024
// Less than a cell: what is decoded in one go, and after which the time is looked at.
const pieceBytes = 16 * 1024
// A chunk of a few bytes costs as much time as one of thousands. What so few cost does not matter.
const leastPieceBytes = 16
const fewPieces = 4_096
// Of an error body; its reason is a sentence.
const mostErrorBytes = 16 * 1024
// Of what a library says about a connection, which may quote a certificate.
const mostCharacters = 200
const mostHeaderBytes = 16 * 1024
// 103 and the like. Each begins the wait for the head anew.
const mostInterimResponses = 8

export const createProviderCall = (
  options: ProviderCallOptions,
  { protocol, clock }: { readonly protocol: CallProtocol; readonly clock: Clock },
): ProviderCall => {
  const { origin, pathname } = new URL(options.baseUrl)
  const prefix = pathname === '/' ? '' : pathname
  let pool: Promise<Pool> | undefined
  const openPool = async (): Promise<Pool> => {
    // Loaded with the first request: a gateway that serves what it has starts without it.
    const { Pool } = await import('undici')
    return new Pool(origin, {
      connections: options.maxConcurrent,
      pipelining: 1,
      connect: { timeout: options.connectTimeoutMs },
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.bodyTimeoutMs,
      maxHeaderSize: mostHeaderBytes,
      // One call at a time has no use for HTTP/2, which a server may choose otherwise, and which has limits of its own.
      allowH2: false,
    })
  }
  const headers = {
    accept: protocol.accept,
    'accept-encoding': 'gzip',
    ...(options.apiKey ? protocol.keyHeaders(options.apiKey) : {}),
  }

  const bytes = async function* (
    { path, mostBytes }: ProviderRequest,
    mayLeave: () => boolean = () => true,
  ): AsyncGenerator<Uint8Array> {
    const endsAt = performance.now() + options.totalTimeoutMs
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(tooSlow(options)), options.totalTimeoutMs).unref()
    let interimResponses = 0
    const onInfo = (): void => {
      interimResponses += 1
      if (interimResponses > mostInterimResponses) ending.abort(tooManyInterimResponses())
    }
    let body: Readable | undefined
    try {
      pool ??= openPool()
      const { signal } = ending
      const answer = await (await pool).compose(leaveIf(mayLeave, notAsked)).request({
        method: 'GET',
        path: prefix + path,
        headers,
        signal,
        onInfo,
      })
      body = answer.body.on('error', () => {})
      const encoding = answer.headers['content-encoding']
      if (answer.statusCode !== 200) {
        const text = await errorTextOf(unzipped(body, encoding, mostErrorBytes))
        throw protocol.refusalOf(answer.statusCode, text, clock.now())
      }
      for await (const piece of unzipped(body, encoding, mostBytes))
        for (let from = 0; from < piece.length; from += pieceBytes) {
          // The timer has no turn while what is there already is decoded.
          if (performance.now() > endsAt) throw tooSlow(options)
          yield piece.subarray(from, from + pieceBytes)
        }
    } catch (cause) {
      throw cause instanceof ProviderError ? cause : brokenOff(cause, options)
    } finally {
      clearTimeout(timer)
      // What nobody reads any more would hold the connection.
      body?.destroy()
    }
  }

  return {
    bytes,
    text: request => textOf(bytes(request)),
    close: async () => (await pool)?.close(),
  }
}

// The body as it is meant. What travels and what is unzipped are both bounded.
async function* unzipped(
  body: Readable,
  encoding: string | string[] | undefined,
  mostBytes: number,
): AsyncGenerator<Uint8Array> {
  const packed = bounded(body, mostBytes)
  const name = String(encoding ?? 'identity').toLowerCase()
  if (name === 'identity') yield* packed
  else if (name !== 'gzip' && name !== 'x-gzip') throw wrongEncoding(name)
  // What goes wrong in either is met by whoever reads the end of the pipe.
  else
    yield* bounded(
      pipeline(packed, createGunzip({ chunkSize: unzipAtOnce }), () => {}),
      mostBytes,
    )
}

async function* bounded(body: AsyncIterable<Uint8Array>, mostBytes: number): AsyncGenerator<Uint8Array> {
  let length = 0
  let pieces = 0
  for await (const piece of body) {
    length += piece.length
    pieces += 1
    if (length > mostBytes)
      throw garbled('too_large', `the provider's body is longer than ${mostBytes} bytes`)
    if (pieces > fewPieces && length < pieces * leastPieceBytes)
      throw garbled(
        'too_many_pieces',
        `the provider's body comes in ${pieces} pieces for ${length} bytes, expected ${leastPieceBytes} bytes in each on average`,
      )
    yield piece
  }
}

// The body of an error only says more about it: what is wrong with the body changes nothing about its status.
const errorTextOf = async (pieces: AsyncIterable<Uint8Array>): Promise<string> => {
  const read: Uint8Array[] = []
  try {
    for await (const piece of pieces) read.push(piece)
  } catch {
    // The status says enough.
  }
  return Buffer.concat(read).toString()
}

const tooSlow = ({ totalTimeoutMs }: ProviderCallOptions): ProviderError =>
  new ProviderError('provider_timeout', `the provider's answer was not whole within ${totalTimeoutMs} ms`, {
    refused: 'too_slow',
  })

const tooManyInterimResponses = (): ProviderError =>
  garbled(
    'too_many_interim_responses',
    `the provider sent more than ${mostInterimResponses} interim responses (1xx) before its answer`,
  )

const notAsked = (): ProviderError =>
  new ProviderError(
    'provider_not_asked',
    'the request was not sent: the windows of the limits that it was granted for may be over',
  )

const wrongEncoding = (encoding: string): ProviderError =>
  garbled(
    'wrong_encoding',
    `the provider's body has the content-encoding ${excerptOf(encoding)}, expected gzip or none`,
  )

// What the system says when no connection came about, so that nothing was asked.
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])

// Without a cause: an error is kept for as long as its cell fails, and those of a parser hold what came.
const brokenOff = (
  cause: unknown,
  { connectTimeoutMs, timeoutMs, bodyTimeoutMs }: ProviderCallOptions,
): ProviderError => {
  const { code } = cause as NodeJS.ErrnoException
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return new ProviderError(
      'provider_unreachable',
      `no connection to the provider within ${connectTimeoutMs} ms`,
    )
  if (code === 'UND_ERR_HEADERS_TIMEOUT')
    return new ProviderError('provider_timeout', `no answer from the provider within ${timeoutMs} ms`)
  if (code === 'UND_ERR_BODY_TIMEOUT')
    return new ProviderError('provider_timeout', `the provider's body stood still for ${bodyTimeoutMs} ms`)
  if (code === 'UND_ERR_HEADERS_OVERFLOW')
    return garbled('too_large', `the provider's headers are longer than ${mostHeaderBytes} bytes`)
  // A zipped body that is cut off fails like one that is not: as what it holds, which is not all of it.
  if (code?.startsWith('Z_'))
    return new ProviderError('provider_cut_off', "the provider's zipped body can't be unzipped", {
      refused: 'damaged',
    })
  if (code !== undefined && unconnected.has(code))
    return new ProviderError('provider_unreachable', `no connection to the provider: ${code}`)
  return new ProviderError(
    'provider_broke_off',
    `the connection to the provider broke: ${excerptOf(messageOf(cause), mostCharacters)}`,
  )
}
