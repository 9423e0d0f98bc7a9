// /provider/*: what the provider answers now, to compare with the cache. Checks and weighs the request, and streams the
// response.

import type { FastifyInstance } from 'fastify'
import { isoOf } from '../../common/calendar.ts'
import { messageOf } from '../../common/errors.ts'
import { holdsKey } from '../../common/key-redaction.ts'
import { quoted } from '../../common/outside-text.ts'
import { OutOfBudgetError, ProviderError } from '../../provider/errors.ts'
import type { Passthrough } from '../../provider/passthrough.ts'
import type { PassthroughProtocol } from '../../provider/protocol.ts'
import { Refusal } from './refusal.ts'

export type ForwardedRequest = {
  readonly path: string
  /** In canonical form. */
  readonly query: string
  /** Its weight at the provider, over all points; 0 where it counts nothing. */
  readonly weight: number
}

const atOnce = 4

const requestHeaders = ['accept-encoding', 'if-none-match', 'if-modified-since']
const responseHeaders = ['content-encoding', 'content-length', 'etag', 'last-modified']

export const registerPassthrough = (
  app: FastifyInstance,
  { protocol, send, totalTimeoutMs }: Passthrough,
): void => {
  let underWay = 0

  app.get('/provider/*', { config: { spends: true } }, async (request, reply) => {
    if (underWay >= atOnce)
      throw new Refusal(
        503,
        'busy',
        `${atOnce} requests to the provider are in progress; try again when one has ended`,
      )
    const target = (request.raw.url ?? '').slice('/provider'.length)
    const { path, query, weight } = forwardedRequest(target, protocol)
    const timeoutMs = totalTimeoutMs()
    const ending = new AbortController()
    const overdue = (): void => {
      const sentence = `its answer was not whole within ${timeoutMs} ms of the request`
      const error = new ProviderError('provider_timeout', sentence)
      // It may have waited for its turn for most of the time, and its reader may be slow.
      error.opensCircuit = false
      ending.abort(error)
      // A reader that reads no more would hold the turn.
      if (reply.raw.headersSent) reply.raw.destroy()
    }
    const timer = setTimeout(overdue, timeoutMs).unref()
    underWay += 1
    // The response has ended, or its reader has left.
    reply.raw.once('close', () => {
      underWay -= 1
      clearTimeout(timer)
      ending.abort()
    })
    const asked = {
      method: request.method === 'HEAD' ? ('HEAD' as const) : ('GET' as const),
      path: query === '' ? path : `${path}?${query}`,
      headers: picked(request.headers, requestHeaders),
      weight,
    }
    try {
      // The timeout also covers the wait for a turn.
      const { status, headers, body } = await Promise.race([
        send(asked, ending.signal),
        abortionOf(ending.signal),
      ])
      const type = typeOf(String(headers['content-type'] ?? ''))
      return reply.code(status).headers(picked(headers, responseHeaders)).type(type).send(body)
    } catch (error) {
      if (error instanceof OutOfBudgetError) throw outOfBudget(weight, error)
      if (error instanceof ProviderError && error.code === 'provider_circuit_open') throw circuitOpen(error)
      return reply.code(502).send({ error: `the provider did not answer: ${messageOf(error)}` })
    }
  })
}

type Headers = Readonly<Record<string, string | string[] | number | undefined>>

/** The named headers that are one short printable text; others are dropped. */
const picked = (headers: Headers, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap(name => {
      const value = headers[name]
      return typeof value === 'string' && /^[\t\x20-\x7e]{1,500}$/.test(value) ? [[name, value]] : []
    }),
  )

/** @param target of the request, behind `/provider`. @throws Refusal */
export const forwardedRequest = (target: string, protocol: PassthroughProtocol): ForwardedRequest => {
  if (holdsKey(target))
    throw new Refusal(
      400,
      'query',
      'the URL must not hold an API key of this gateway, because the provider would log it',
    )
  const [path = '', ...rest] = target.split('?')
  const allowed = protocol.parametersOf(path)
  if (!allowed)
    throw new Refusal(404, 'path', `the path must be ${protocol.paths.join(' or ')}, got ${quoted(path)}`)
  const given = new URLSearchParams(rest.join('?'))
  // Our key replaces the caller's.
  given.delete(protocol.keyParameter)
  const forms: [names: readonly string[], form: RegExp, text: string][] = [
    [allowed.counts, /^\d{1,5}$/, 'an integer of at most 5 digits'],
    [allowed.dates, /^(?:(?:^|,)\d{4}-\d\d-\d\d(?:T\d\d:\d\d)?)+$/, 'YYYY-MM-DD or YYYY-MM-DDThh:mm'],
  ]
  const single = [...allowed.counts, ...allowed.choices]
  const names = [...allowed.lists, ...allowed.dates, ...single]
  const parameters = new Map<string, string>()
  // Unknown names are refused, because some of them multiply the points.
  for (const name of new Set(given.keys())) {
    const values = given.getAll(name)
    const value = values.join(',')
    const fault = (sentence: string): Refusal => new Refusal(400, 'query', sentence)
    if (!names.includes(name))
      throw fault(`the parameters must be ${names.join(', ') || 'none'}, got ${quoted(name)}`)
    if (single.includes(name) && values.length > 1) throw fault(`${name} must be given only once`)
    for (const [of, form, text] of forms)
      if (of.includes(name) && !form.test(value)) throw fault(`${name} must be ${text}, got ${quoted(value)}`)
    parameters.set(name, value)
  }
  return {
    path,
    query: new URLSearchParams([...parameters]).toString().replaceAll('%2C', ','),
    weight: protocol.weightOf(path, parameters),
  }
}

const abortionOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

const outOfBudget = (weight: number, error: ProviderError): Refusal =>
  new Refusal(
    429,
    'budget',
    `the provider budget has no room for a request of weight ${Math.round(weight * 1000) / 1000}${againFrom(error)}`,
  )

const circuitOpen = (error: ProviderError): Refusal =>
  new Refusal(503, 'circuit', `the provider circuit is open after failures${againFrom(error)}`)

const againFrom = ({ retryAt }: ProviderError): string =>
  retryAt === undefined ? '' : `; try again at ${isoOf(retryAt)}`

/** A content type for the provider's bytes that no browser executes. */
const typeOf = (given: string): string => {
  const type = given.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'application/json') return 'application/json; charset=utf-8'
  if (type === 'text/csv') return 'text/csv; charset=utf-8'
  return type.startsWith('text/') ? 'text/plain; charset=utf-8' : 'application/octet-stream'
}
