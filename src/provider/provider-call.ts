// One HTTP call to the provider: sends a request, streams the body of a 200 or throws the ProviderError of the response; for
// operators, returns the whole response. Owns the connection pool and its timeouts; response-body.ts bounds bodies. The protocol
// interprets responses; the client decides on retries.

import type { Readable } from 'node:stream'
import { buffer as bufferOf, text as textOf } from 'node:stream/consumers'
import type { Pool } from 'undici'
import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { garbled, notSent, ProviderError } from './errors.ts'
import { excerptOf } from './excerpt.ts'
import type { CallProtocol, ProviderRequest } from './protocol.ts'
import { errorTextOf, unzipped } from './response-body.ts'
import { validateBeforeSend } from './validate-before-send.ts'

export type ProviderCallOptions = {
  /** Origin and path prefix, without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly connectTimeoutMs: number
  /** Until the response headers. */
  readonly timeoutMs: number
  /** Between two chunks of the body. */
  readonly bodyTimeoutMs: number
  /**
   * For the whole call, including the caller's work on each chunk: a slow body, or a slow reader, must not hold one of the
   * few connections for ever.
   */
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
   * The whole response, whatever its status.
   * @throws ProviderError if none came, or none that is complete and within bounds; the reason of `signal` once it is aborted
   */
  response(request: ProviderRequest, options: ResponseOptions): Promise<WholeResponse>
  close(): Promise<void>
}

type ResponseOptions = {
  readonly method: 'GET' | 'HEAD'
  readonly accept: string
  /** As for `bytes`. */
  readonly isValid: () => boolean
  /** Aborted when nobody needs the response any more. */
  readonly signal: AbortSignal
}

export type WholeResponse = {
  readonly status: number
  /** The `content-type` as it came, empty if there is none. */
  readonly type: string
  /** Unzipped; empty for HEAD. */
  readonly body: Buffer
}

/** The head of a response, and for errors its text, cut to some kilobytes. */
type Head = { readonly status: number; readonly type: string; errorText(): Promise<string> }

type CallOptions = Partial<ResponseOptions> & {
  /** Called before the body is read. What it throws ends the call. */
  onHead(head: Head): Promise<void> | void
}

// The bytes that are decoded between two checks of the deadline: less than the part of one cell.
const sliceBytes = 16 * 1024
// The most bytes of an error body; its reason is one sentence.
const maxErrorBytes = 16 * 1024
// The most characters of a library's message about a connection, which may quote a certificate.
const maxCharacters = 200
const maxHeaderBytes = 16 * 1024
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
      connect: { timeout: options.connectTimeoutMs },
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.bodyTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      // One call per connection needs no HTTP/2, which a server could choose and which has limits of its own.
      allowH2: false,
    })
  }
  const headers = {
    accept: protocol.accept,
    'accept-encoding': 'gzip',
    ...(options.apiKey ? protocol.keyHeaders(options.apiKey) : {}),
  }

  const receive = async function* (
    { path, maxBytes }: ProviderRequest,
    { method = 'GET', accept, isValid = () => true, signal, onHead }: CallOptions,
  ): AsyncGenerator<Uint8Array> {
    const endsAt = performance.now() + options.totalTimeoutMs
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(tooSlow(options)), options.totalTimeoutMs).unref()
    let interimResponses = 0
    const onInfo = (): void => {
      interimResponses += 1
      if (interimResponses > maxInterimResponses) ending.abort(tooManyInterimResponses())
    }
    let body: Readable | undefined
    try {
      pool ??= openPool()
      const either = signal ? AbortSignal.any([ending.signal, signal]) : ending.signal
      const response = await (await pool).compose(validateBeforeSend(isValid, expired)).request({
        method,
        path: prefix + path,
        headers: accept === undefined ? headers : { ...headers, accept },
        signal: either,
        onInfo,
      })
      const received = response.body.on('error', () => {})
      body = received
      const encoding = response.headers['content-encoding']
      await onHead({
        status: response.statusCode,
        type: String(response.headers['content-type'] ?? ''),
        errorText: () => errorTextOf(unzipped(received, encoding, maxErrorBytes)),
      })
      // The content-encoding of a HEAD response has no body.
      const chunks = method === 'HEAD' ? received : unzipped(received, encoding, maxBytes)
      for await (const chunk of chunks)
        for (let from = 0; from < chunk.length; from += sliceBytes) {
          // The timer does not run while buffered chunks are decoded.
          if (performance.now() > endsAt) throw tooSlow(options)
          yield chunk.subarray(from, from + sliceBytes)
        }
    } catch (cause) {
      signal?.throwIfAborted()
      throw cause instanceof ProviderError ? cause : brokenOff(cause, options)
    } finally {
      clearTimeout(timer)
      // An unread body would hold the connection.
      body?.destroy()
    }
  }

  const bytes = (request: ProviderRequest, isValid?: () => boolean): AsyncGenerator<Uint8Array> =>
    receive(request, {
      ...(isValid && { isValid }),
      onHead: async ({ status, errorText }) => {
        if (status !== 200) throw protocol.refusalOf(status, await errorText(), clock.now())
      },
    })

  return {
    bytes,
    text: request => textOf(bytes(request)),
    close: async () => {
      await (await pool)?.close()
    },
    response: async (request, given) => {
      let head: Head | undefined
      const chunks = receive(request, {
        ...given,
        onHead: came => {
          head = came
        },
      })
      const body = await bufferOf(chunks)
      return { status: head?.status ?? 0, type: head?.type ?? '', body }
    },
  }
}

const tooSlow = ({ totalTimeoutMs }: ProviderCallOptions): ProviderError =>
  new ProviderError('provider_timeout', `the provider's answer was not whole within ${totalTimeoutMs} ms`, {
    refused: 'too_slow',
  })

const tooManyInterimResponses = (): ProviderError =>
  garbled(
    'too_many_interim_responses',
    `the provider sent more than ${maxInterimResponses} interim responses (1xx) before its answer`,
  )

const expired = (): ProviderError =>
  notSent('the rate-limit windows in which its weight was reserved may be over')

// Error codes of the system for a connection that was not established: nothing was sent.
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])

// Without a cause: the error is kept for as long as its cell fails, and the errors of a parser hold what they read.
const brokenOff = (
  cause: unknown,
  { connectTimeoutMs, timeoutMs, bodyTimeoutMs }: ProviderCallOptions,
): ProviderError => {
  const { code } = cause as NodeJS.ErrnoException
  // Pools are closed when nothing is under way any more, never destroyed before.
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') return notSent('its connections are closed')
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
    return garbled('too_large', `the provider's headers are longer than ${maxHeaderBytes} bytes`)
  // A truncated gzip body is an incomplete body like a truncated plain one.
  if (code?.startsWith('Z_'))
    return new ProviderError('provider_cut_off', "the provider's zipped body can't be unzipped", {
      refused: 'damaged',
    })
  if (code !== undefined && unconnected.has(code))
    return new ProviderError('provider_unreachable', `no connection to the provider: ${code}`)
  return new ProviderError(
    'provider_broke_off',
    `the connection to the provider broke: ${excerptOf(messageOf(cause), maxCharacters)}`,
  )
}
