// /status, /cells, /search and /events: how the gateway and its fleet are, for the page and for the CLI. Reads the requests;
// the reports are put together in src/operate.

import type { FastifyInstance } from 'fastify'
import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import { createEventStreams, type StreamedStatus } from './event-streams.ts'
import { Refusal } from './refusal.ts'
import type { GatewayStatus, SearchReport } from './status-report.ts'

export type OpsStatus = StreamedStatus & {
  report(): Promise<GatewayStatus>
  search(q: string, limit: number): SearchReport
  /** The time between two events of /events; a second where absent. */
  readonly statusEveryMs?: number | undefined
}

const longestQuery = 100
const maxFound = 50
const usuallyFound = 8

/** @param maxStreams of events at once */
export const registerStatus = (app: FastifyInstance, status: OpsStatus, maxStreams: () => number): void => {
  app.get('/status', () => status.report())
  app.get('/cells', async () => status.cells())
  app.get<{ Querystring: Record<string, string | string[] | undefined> }>(
    '/search',
    async ({ query: { q, limit = String(usuallyFound) } }) => {
      if (typeof q !== 'string' || q.trim() === '' || q.length > longestQuery)
        throw new InputError(
          `q is ${typeof q === 'string' ? quoted(q) : q === undefined ? 'missing' : 'given more than once'}; allowed: 1 to ${longestQuery} characters of a name`,
        )
      const most = typeof limit === 'string' && /^\d{1,3}$/.test(limit) ? Number(limit) : 0
      if (most < 1 || most > maxFound)
        throw new InputError(
          `limit is ${typeof limit === 'string' ? quoted(limit) : 'given more than once'}; allowed: a whole number from 1 to ${maxFound}`,
        )
      return status.search(q, most)
    },
  )

  const streams = createEventStreams(status, { most: maxStreams, statusEveryMs: status.statusEveryMs })
  app.get('/events', { exposeHeadRoute: false }, async (_request, reply) => {
    if (status.isDraining())
      throw new Refusal(503, 'draining', 'the gateway is stopping, and opens no stream any more')
    if (!streams.add(reply.raw))
      throw new Refusal(
        503,
        'streams',
        `there are ${maxStreams()} streams already; allowed: ${maxStreams()}`,
        {
          'retry-after': '10',
        },
      )
    reply.hijack()
  })
}
