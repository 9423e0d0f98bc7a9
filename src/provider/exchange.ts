// One HTTP exchange with the provider: sends the path, gives the body of a 200 as it comes in or throws the ProviderError
// the answer stands for. Owns the connection pool and its timeouts; decides nothing about retries.

import { pipeline, type Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import type { Pool } from 'undici'
import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { ProviderError } from './errors.ts'
import { refusalOf } from './refusal.ts'

export type ExchangeOptions = {
  /** Origin and path prefix, without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly connectTimeoutMs: number
  /** Until the head of the answer. */
  readonly timeoutMs: number
  /** Between two parts of the body. */
  readonly bodyTimeoutMs: number
  /** For the whole exchange: a body that trickles must not keep one of the few places for ever. */
  readonly totalTimeoutMs: number
  readonly maxConcurrent: number
}

export type Exchange = {
  /**
   * The unzipped bytes of a 200 as they come, each piece once it is asked for.
   * @throws ProviderError, in the midst of the body too
   */
  bytes(path: string): AsyncGenerator<Uint8Array>
  /** The text of a 200, whole. @throws ProviderError */
  text(path: string): Promise<string>
  close(): Promise<void>
}

const maxBodyBytes = 64 * 1024 * 1024
// Some two cells: what is decoded in one go.
const unzipAtOnce = 64 * 1024

export const createExchange = (options: ExchangeOptions, clock: Clock): Exchange => {
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
      maxResponseSize: maxBodyBytes,
    })
  }
  const headers = {
    accept: 'application/json',
    'accept-encoding': 'gzip',
    // In a header and not in the query, so that it never stands in a URL, a log line or an error.
    ...(options.apiKey ? { 'x-api-key': options.apiKey } : {}),
  }

  const bytes = async function* (path: string): AsyncGenerator<Uint8Array> {
    try {
      pool ??= openPool()
      const answer = await (await pool).request({
        method: 'GET',
        path: prefix + path,
        headers,
        signal: AbortSignal.timeout(options.totalTimeoutMs),
      })
      const body = bounded(unzipped(answer.body, answer.headers['content-encoding']))
      if (answer.statusCode !== 200) throw refusalOf(answer.statusCode, await textOf(body), clock.now())
      yield* body
    } catch (cause) {
      throw cause instanceof ProviderError ? cause : brokenOff(cause, options)
    }
  }

  return {
    bytes,
    text: path => textOf(bytes(path)),
    close: async () => (await pool)?.close(),
  }
}

// What the system says when no connection came about, so that nothing was asked.
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])

const unzipped = (body: Readable, encoding: string | string[] | undefined): Readable =>
  // What goes wrong in either is met by whoever reads the end of the pipe.
  encoding === 'gzip' ? pipeline(body, createGunzip({ chunkSize: unzipAtOnce }), () => {}) : body

async function* bounded(body: Readable): AsyncGenerator<Uint8Array> {
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > maxBodyBytes) throw tooLong()
    yield piece
  }
}

const tooLong = (cause?: unknown): ProviderError =>
  new ProviderError('provider_garbled', `the provider's body is longer than ${maxBodyBytes} bytes`, { cause })

const brokenOff = (
  cause: unknown,
  { connectTimeoutMs, timeoutMs, bodyTimeoutMs, totalTimeoutMs }: ExchangeOptions,
): ProviderError => {
  if (cause instanceof Error && cause.name === 'TimeoutError')
    return new ProviderError(
      'provider_timeout',
      `the provider's answer was not whole within ${totalTimeoutMs} ms`,
      { cause },
    )
  const { code } = cause as NodeJS.ErrnoException
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return new ProviderError(
      'provider_unreachable',
      `no connection to the provider within ${connectTimeoutMs} ms`,
      { cause },
    )
  if (code === 'UND_ERR_HEADERS_TIMEOUT')
    return new ProviderError('provider_timeout', `no answer from the provider within ${timeoutMs} ms`, {
      cause,
    })
  if (code === 'UND_ERR_BODY_TIMEOUT')
    return new ProviderError('provider_timeout', `the provider's body stood still for ${bodyTimeoutMs} ms`, {
      cause,
    })
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return tooLong(cause)
  // A zipped body that is cut off fails like one that is not: as what it holds, which is not all of it.
  if (code?.startsWith('Z_'))
    return new ProviderError('provider_cut_off', "the provider's zipped body can't be unzipped", { cause })
  if (code !== undefined && unconnected.has(code))
    return new ProviderError('provider_unreachable', `no connection to the provider: ${code}`, { cause })
  return new ProviderError(
    'provider_broke_off',
    `the connection to the provider broke: ${messageOf(cause)}`,
    { cause },
  )
}
