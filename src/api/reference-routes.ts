// The routes of the pages that are open to anyone, limited by address: the API reference with its files, and the status page where it is
// configured. The first request loads what answers.

import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { apiPrefix } from '../common/endpoints.ts'
import { type ClientAddress, networkOf } from './connection/client-address.ts'
import { headOf } from './connection/connection.ts'
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
// Others are forgotten, and begin anew.
const maxNetworks = 5_000

type ReferenceParts = {
  readonly clock: Clock
  readonly publicUrl: string | null
  readonly originOf: Transport['originOf']
  /** Undefined where there is no status page. */
  readonly status: StatusParts | undefined
}

export const routeReference = (
  app: FastifyInstance,
  send: Send,
  clientAddress: ClientAddress,
  { clock, publicUrl, originOf, status }: ReferenceParts,
): void => {
  const waitOf = createLimit(clock)
  app.register(async open => {
    open.addHook('onRequest', (request, _, done) => {
      const waitMs = waitOf(networkOf(clientAddress.ofRequest(request.raw) ?? ''))
      if (waitMs === 0) return done()
      const page = request.url.startsWith('/status') ? 'the status page' : 'the reference'
      throw new Problem(429, sentences.referenceBusy(requestsPerMinute, page), {
        'retry-after': String(Math.ceil(waitMs / 1000)),
      })
    })
    const route = { method: ['GET', 'HEAD'] as ['GET', 'HEAD'], config }
    const serve = (paths: readonly string[], load: () => Promise<ServePage>): void => {
      let pages: Promise<ServePage> | undefined
      for (const path of paths)
        open.route({
          ...route,
          url: path,
          handler: async (request, reply) => {
            pages ??= load()
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

/** Counts a request of a network. Returns 0, or in how many ms its next one is admitted. A minute begins with the first request. */
const createLimit = ({ now: instant, elapsed = instant }: Clock): ((network: string) => number) => {
  const minutes = new LRUCache<string, { requests: number; readonly endsAt: number }>({ max: maxNetworks })
  return network => {
    const now = elapsed()
    let minute = minutes.get(network)
    if (!minute || now >= minute.endsAt) {
      minute = { requests: 0, endsAt: now + minuteMs }
      minutes.set(network, minute)
    }
    minute.requests += 1
    return minute.requests > requestsPerMinute ? minute.endsAt - now : 0
  }
}
