// The routes of the pages that are open to anyone, uncounted and bounded by address: the API's reference (its page, files and
// OpenAPI document), and the status page where it is configured. served-reference.ts and served-status.ts have what they answer; the first
// request loads them.

import type { IncomingMessage } from 'node:http'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance } from 'fastify'
import { minuteMs } from '../common/calendar.ts'
import { apiPrefix } from '../common/endpoints.ts'
import { type ClientAddress, networkOf } from './connection/client-address.ts'
import { headOf } from './connection/connection.ts'
import { Problem } from './problem.ts'
import type { Transport } from './refusals.ts'
import type { Send } from './representation.ts'
import { referenceRedirects } from './request.ts'
import { sentences } from './sentences.ts'
import type { StatusParts } from './served-status.ts'

const paths = [
  `${apiPrefix}/openapi.json`,
  '/docs',
  '/docs/reference.css',
  '/docs/reference.js',
  '/docs/icon.svg',
] as const

const statusPaths = ['/status', '/status.json', '/status.css'] as const

// A visit of the reference takes five, so that thirty people behind one address may open it at once.
const requestsPerMinute = 300
const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'] as const
const noHeaders = Object.fromEntries(names.map(name => [name, false]))

type CreateReference = typeof import('./served-reference.ts').createReference

type CreateServedStatus = typeof import('./served-status.ts').createServedStatus

export const routeReference = (
  app: FastifyInstance,
  send: Send,
  clientAddress: ClientAddress,
  {
    publicUrl,
    originOf,
    status,
  }: {
    readonly publicUrl: string | null
    readonly originOf: Transport['originOf']
    /** Undefined where there is no status page. */
    readonly status: StatusParts | undefined
  },
): void => {
  const networkOfClient = ({ raw: { socket, headers } }: { raw: IncomingMessage }): string => {
    const peer = clientAddress.ofPeer(socket.remoteAddress)
    return networkOf(clientAddress.behind(peer, headers['x-forwarded-for'] as string | undefined) ?? '')
  }
  let reference: ReturnType<CreateReference> | undefined
  app.register(async open => {
    await open.register(rateLimit, {
      timeWindow: minuteMs,
      max: requestsPerMinute,
      keyGenerator: networkOfClient,
      // The headers of the contract are those of a key's quota.
      addHeaders: noHeaders as never,
      addHeadersOnExceeding: noHeaders as never,
      errorResponseBuilder: ({ url }, { ttl }) => {
        const page = statusPaths.some(path => url.startsWith(path)) ? 'the status' : 'the reference'
        return new Problem(429, sentences.referenceBusy(requestsPerMinute, page), {
          'retry-after': String(Math.ceil(ttl / 1000)),
        })
      },
    })
    const route = { method: ['GET', 'HEAD'] as ['GET', 'HEAD'], config }
    for (const path of paths)
      open.route({
        ...route,
        url: path,
        handler: async (request, reply) => {
          const { createReference } = await import('./served-reference.ts')
          reference ??= createReference(publicUrl)
          const { raw, query } = request
          const acceptLanguage = raw.headers['accept-language']
          const address = originOf(raw)
          const found = await reference({ path, query: query as string, acceptLanguage, address })
          await send.representation(request, reply, found)
        },
      })
    let served: ReturnType<CreateServedStatus> | undefined
    for (const path of status ? statusPaths : [])
      open.route({
        ...route,
        url: path,
        handler: async (request, reply) => {
          const { createServedStatus } = await import('./served-status.ts')
          served ??= createServedStatus(status as StatusParts)
          const acceptLanguage = request.raw.headers['accept-language']
          const found = await served({ path, query: request.query as string, acceptLanguage })
          await send.representation(request, reply, found)
        },
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
