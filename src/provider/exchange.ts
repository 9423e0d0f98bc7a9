// One HTTP exchange with the provider: sends the path, reads the body to its end, gives the text of a 200 or throws the
// ProviderError the answer stands for. Owns the connection pool and its timeouts; decides nothing about retries.

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
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
  /** The text of a 200. @throws ProviderError */
  get(path: string): Promise<string>
  close(): Promise<void>
}

const maxBodyBytes = 64 * 1024 * 1024

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

  return {
    get: async path => {
      try {
        pool ??= openPool()
        const {
          statusCode,
          headers: given,
          body,
        } = await (await pool).request({
          method: 'GET',
          path: prefix + path,
          headers,
          signal: AbortSignal.timeout(options.totalTimeoutMs),
        })
        const text = await textOf(Buffer.from(await body.arrayBuffer()), given['content-encoding'])
        if (statusCode === 200) return text
        throw refusalOf(statusCode, text, clock.now())
      } catch (cause) {
        throw cause instanceof ProviderError ? cause : brokenOff(cause, options)
      }
    },
    close: async () => (await pool)?.close(),
  }
}

// What the system says when no connection came about, so that nothing was asked.
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])

const unzip = promisify(gunzip)

// A zipped body that is cut off fails here like one that is not: as what it holds, which is not all of it.
const textOf = async (bytes: Buffer, encoding: string | string[] | undefined): Promise<string> => {
  if (encoding !== 'gzip') return bytes.toString()
  try {
    return (await unzip(bytes, { maxOutputLength: maxBodyBytes })).toString()
  } catch (cause) {
    throw new ProviderError('provider_cut_off', "the provider's zipped body can't be unzipped", { cause })
  }
}

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
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE')
    return new ProviderError('provider_garbled', `the provider's body is longer than ${maxBodyBytes} bytes`, {
      cause,
    })
  if (code !== undefined && unconnected.has(code))
    return new ProviderError('provider_unreachable', `no connection to the provider: ${code}`, { cause })
  return new ProviderError(
    'provider_broke_off',
    `the connection to the provider broke: ${messageOf(cause)}`,
    { cause },
  )
}
