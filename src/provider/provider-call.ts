// One HTTP call to the provider: streams the body of a 200, or throws the ProviderError of the response; for operators, streams any
// response as it comes. Owns the connection pool, its timeouts, and the bounds of bodies.

import { pipeline, type Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { createGunzip, type Gunzip } from 'node:zlib'
import type { Dispatcher, Pool } from 'undici'
import type { Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import { brokenOff, maxHeaderBytes, tooSlow } from './broken-call.ts'
import { excerptOf, garbled, notSent } from './errors.ts'
import type { CallProtocol, ProviderRequest } from './protocol.ts'

export type ProviderCallOptions = {
  /** Origin and path prefix, without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly connectTimeoutMs: number
  /** Until the response headers. */
  readonly timeoutMs: number
  /** Between two chunks of the body. */
  readonly bodyTimeoutMs: number
  /** For the whole call, with the caller's work on each chunk: nothing slow must hold one of the few connections for ever. */
  readonly totalTimeoutMs: number
  readonly maxConcurrent: number
}

export type ProviderCall = {
  /**
   * The unzipped bytes of a 200, each chunk on demand. A reader that stops early closes the connection.
   * @param isValid called once there is a connection, right before the request is written to it
   * @throws ProviderError, in the middle of the body too; `provider_not_sent` if the request is not valid any more
   */
  bytes(request: ProviderRequest, isValid?: () => boolean): AsyncGenerator<Uint8Array>
  /** The whole text of a 200. @throws ProviderError */
  text(request: ProviderRequest): Promise<string>
  /**
   * The response as it comes, whatever its status from 200 to 599.
   * @throws ProviderError if none came, and in the middle of the body; the reason of `signal` once it is aborted
   */
  stream(request: StreamedRequest, signal: AbortSignal): Promise<StreamedResponse>
  close(): Promise<void>
}

/** Gives calls spans of a trace. @param origin of the provider */
export type TracedCall = { call<Of extends ProviderCall>(call: Of, origin: string): Of }

export type StreamedRequest = {
  readonly method: 'GET' | 'HEAD'
  /** Path and query, appended to the provider's base URL. */
  readonly path: string
  /** Beside those that carry the key. */
  readonly headers: Readonly<Record<string, string>>
  /** As for `bytes`. */
  readonly isValid: () => boolean
}

export type StreamedResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Encoded as the headers say. */
  readonly body: AsyncIterable<Uint8Array>
}

// The bytes that are decoded between two checks of the deadline: less than the part of one cell.
const sliceBytes = 16 * 1024
// The most bytes of an error body; its reason is one sentence.
const maxErrorBytes = 16 * 1024
// A kept connection stays at the address that the provider's name had when it was opened.
const longestConnectionMs = 60_000
const unzipAtOnce = 64 * 1024
// A chunk of a few bytes costs as much time as one of thousands; below this number of chunks that does not matter.
const minChunkBytes = 16
const fewChunks = 4_096
// 1xx such as 103. Each restarts the timeout of the headers.
const maxInterimResponses = 8

export const createProviderCall = (
  options: ProviderCallOptions,
  { protocol, clock }: { readonly protocol: CallProtocol; readonly clock: Clock },
): ProviderCall => {
  const { origin, pathname } = new URL(options.baseUrl)
  const prefix = pathname === '/' ? '' : pathname
  let pool: Promise<Pool> | undefined
  const openPool = async (): Promise<Pool> => {
    // Imported with the first request: a gateway that serves from its cache starts without it.
    const { Pool } = await import('undici')
    return new Pool(origin, {
      connections: options.maxConcurrent,
      pipelining: 1,
      clientTtl: longestConnectionMs,
      connect: { timeout: options.connectTimeoutMs },
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.bodyTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      // One call per connection needs no HTTP/2, which a server could choose and which has other limits.
      allowH2: false,
    })
  }
  const keyHeaders = options.apiKey ? protocol.keyHeaders(options.apiKey) : {}

  /** @throws ProviderError */
  const send = async (
    { method, path, headers, isValid }: StreamedRequest,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> => {
    const ending = new AbortController()
    let hadConnection = false
    const mayBeSent = (): boolean => {
      hadConnection = true
      return isValid()
    }
    let interimResponses = 0
    const onInfo = (): void => {
      interimResponses += 1
      if (interimResponses <= maxInterimResponses) return
      const sentence = `the provider sent more than ${maxInterimResponses} interim responses (1xx) before its answer`
      ending.abort(garbled('too_many_interim_responses', sentence))
    }
    try {
      pool ??= openPool().catch((cause: unknown) => {
        // Tried again with the next request: this machine may have no descriptor left for a moment.
        pool = undefined
        throw notSent(`the HTTP client can't be loaded: ${messageOf(cause)}`)
      })
      return await (await pool).compose(validateBeforeSend(mayBeSent)).request({
        method,
        path: prefix + path,
        headers: { ...headers, ...keyHeaders },
        signal: AbortSignal.any([ending.signal, signal]),
        onInfo,
      })
    } catch (cause) {
      throw brokenOff(cause, options, hadConnection)
    }
  }

  const bytes = async function* (
    { path, maxBytes }: ProviderRequest,
    isValid: () => boolean = () => true,
  ): AsyncGenerator<Uint8Array> {
    const endsAt = performance.now() + options.totalTimeoutMs
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(tooSlow(options)), options.totalTimeoutMs).unref()
    const headers = { accept: protocol.accept, 'accept-encoding': 'gzip' }
    let body: Readable | undefined
    try {
      const response = await send({ method: 'GET', path, headers, isValid }, ending.signal)
      body = response.body.on('error', () => {})
      const encoding = response.headers['content-encoding']
      if (response.statusCode !== 200) {
        const text = await errorTextOf(unzipped(body, encoding, maxErrorBytes))
        throw protocol.refusalOf(response.statusCode, text, clock.now())
      }
      for await (const chunk of unzipped(body, encoding, maxBytes))
        for (let from = 0; from < chunk.length; from += sliceBytes) {
          // The timer does not run while buffered chunks are decoded.
          if (performance.now() > endsAt) throw tooSlow(options)
          yield chunk.subarray(from, from + sliceBytes)
        }
    } catch (cause) {
      throw brokenOff(cause, options)
    } finally {
      clearTimeout(timer)
      // An unread body would hold the connection.
      body?.destroy()
    }
  }

  const stream: ProviderCall['stream'] = async (request, signal) => {
    const broken = (cause: unknown): unknown => (signal.aborted ? signal.reason : brokenOff(cause, options))
    const streamed = async function* (body: Readable): AsyncGenerator<Uint8Array> {
      try {
        yield* body
      } catch (cause) {
        throw broken(cause)
      }
    }
    try {
      const { statusCode, headers, body } = await send(request, signal)
      body.on('error', () => {})
      if (statusCode <= 599) return { status: statusCode, headers, body: streamed(body) }
      body.destroy()
      throw garbled('wrong_shape', `the provider answered with the status ${statusCode}`)
    } catch (cause) {
      throw broken(cause)
    }
  }

  return {
    bytes,
    text: request => textOf(bytes(request)),
    close: async () => void (await (await pool)?.close()),
    stream,
  }
}

// Calls `isValid` once there is a connection, in the same turn of the event loop that writes the request to it: the process may be
// suspended for hours between the reservation of weight and that. If it is false, nothing is sent.
const validateBeforeSend =
  (isValid: () => boolean): Dispatcher.DispatcherComposeInterceptor =>
  dispatch =>
  (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        if (isValid()) handler.onRequestStart?.(controller, context)
        else controller.abort(notSent('the rate-limit windows in which its weight was reserved may be over'))
      },
      onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
      onResponseStart: (...given) => handler.onResponseStart?.(...given),
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onResponseError: (...given) => handler.onResponseError?.(...given),
    })

/** The decoded body. Both the compressed and the decompressed size are bounded. @throws ProviderError */
export async function* unzipped(
  body: Readable,
  encoding: string | string[] | undefined,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  const compressed = bounded(body, maxBytes)
  const name = String(encoding ?? 'identity').toLowerCase()
  if (name === 'identity') yield* compressed
  else if (name !== 'gzip' && name !== 'x-gzip')
    throw garbled(
      'wrong_encoding',
      `the provider's body has the content-encoding ${excerptOf(name)}, expected gzip or none`,
    )
  else {
    const gunzip = shortLived(createGunzip({ chunkSize: unzipAtOnce }))
    // Errors of either stream reach the reader of the pipeline's end.
    yield* bounded(
      pipeline(compressed, gunzip, () => {}),
      maxBytes,
    )
  }
}

// V8 keeps a zlib stream, with the memory that it writes to, until it collects old objects. So that memory is released at the end of the
// stream. The field is not part of Node's API; without it, memory is only freed later.
const shortLived = (gunzip: Gunzip): Gunzip =>
  gunzip.once('end', () => {
    ;(gunzip as { _outBuffer?: unknown })._outBuffer = undefined
  })

async function* bounded(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let length = 0
  let chunks = 0
  for await (const chunk of body) {
    length += chunk.length
    chunks += 1
    if (length > maxBytes) throw garbled('too_large', `the provider's body is longer than ${maxBytes} bytes`)
    if (chunks > fewChunks && length < chunks * minChunkBytes)
      throw garbled(
        'too_many_chunks',
        `the provider's body comes in ${chunks} chunks for ${length} bytes, expected ${minChunkBytes} bytes in each on average`,
      )
    yield chunk
  }
}

/** The text of an error response, as far as it can be read: the status is enough. */
export const errorTextOf = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => {
  const read: Uint8Array[] = []
  try {
    for await (const chunk of chunks) read.push(chunk)
  } catch {}
  return Buffer.concat(read).toString()
}
