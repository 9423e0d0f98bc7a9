// The routes of the pages that are open to anyone, limited by address: the API reference with its files, and the status page where it is
// configured. The first request loads what answers.

import type { IncomingMessage } from 'node:http'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance } from 'fastify'
import { minuteMs } from '../common/calendar.ts'
import { apiPrefix } from '../common/endpoints.ts'
import { type ClientAddress, networkOf } from './connection/client-address.ts'
import { headOf } from './connection/connection.ts'
import { MonotonicWindows } from './monotonic-windows.ts'
import { Problem } from './problem.ts'
import type { Transport } from './refusals.ts'
import type { Send } from './representation.ts'
import { referenceRedirects } from './request.ts'
import { sentences } from './sentences.ts'
import type { ServePage } from './served-reference.ts'
import type { StatusParts } from './status-page.ts'

const paths = [
  `${apiPrefix}/openapi.json`,
  '/docs',
  '/docs/reference.css',
  '/docs/reference.js',
  '/docs/icon.svg',
] as const

// A visit of the reference takes five: sixty people with one address may open it in a minute.
const requestsPerMinute = 300
const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'] as const
const noHeaders = Object.fromEntries(names.map(name => [name, false]))

type ReferenceParts = {
  readonly publicUrl: string | null
  readonly originOf: Transport['originOf']
  /** Undefined where there is no status page. */
  readonly status: StatusParts | undefined
}

export const routeReference = (
  app: FastifyInstance,
  send: Send,
  clientAddress: ClientAddress,
  { publicUrl, originOf, status }: ReferenceParts,
): void => {
  const networkOfClient = ({ raw }: { raw: IncomingMessage }): string =>
    networkOf(clientAddress.ofRequest(raw) ?? '')
  app.register(async open => {
    await open.register(rateLimit, {
      timeWindow: minuteMs,
      max: requestsPerMinute,
      store: MonotonicWindows,
      keyGenerator: networkOfClient,
      // The headers of the contract are those of a key's quota.
      addHeaders: noHeaders as never,
      addHeadersOnExceeding: noHeaders as never,
      errorResponseBuilder: ({ url }, { ttl }) => {
        const page = url.startsWith('/status') ? 'the status page' : 'the reference'
        return new Problem(429, sentences.referenceBusy(requestsPerMinute, page), {
          'retry-after': String(Math.ceil(ttl / 1000)),
        })
      },
    })
    const route = { method: ['GET', 'HEAD'] as ['GET', 'HEAD'], config }
    const serve = (paths: readonly string[], load: () => Promise<ServePage>): void => {
      let pages: Promise<ServePage> | undefined
      for (const path of paths)
        open.route({
          ...route,
          url: path,
          handler: async (request, reply) => {
            // One that failed is loaded anew: a descriptor may have been missing.
            pages ??= load().catch(error => {
              pages = undefined
              throw error
            })
            const { raw, query } = request
            const acceptLanguage = raw.headers['accept-language']
            const asked = { path, query: query as string, acceptLanguage, address: originOf(raw) }
            await send.representation(request, reply, await (await pages)(asked))
          },
        })
    }
    serve([...paths, ...(status ? ['/status.css'] : [])], async () => {
      const { createReference } = await import('./served-reference.ts')
      return createReference(publicUrl)
    })
    if (status)
      serve(['/status', '/status.json'], async () => {
        const { createServedStatus } = await import('./status-page.ts')
        return createServedStatus(status)
      })
    for (const [path, location] of referenceRedirects) {
      const head = headOf(308, `location: ${location}\r\ncache-control: no-cache\r\ncontent-length: 0\r\n`)
      open.route({
        ...route,
        url: path,
        handler: async (request, reply) => send.ready(request, reply, 308, head, undefined, false),
      })
    }
  })
}

const config = { endpoint: 'reference', isOpen: true } as const
