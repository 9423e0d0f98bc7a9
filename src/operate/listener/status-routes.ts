// /status, /cells, /search and /events: how the gateway and its fleet are, for the page and for the CLI. Reads the requests;
// the reports are put together in src/operate.

import type { FastifyInstance } from 'fastify'
import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import { createEventStreams, type StreamedStatus } from './event-streams.ts'
import { Refusal } from './refusal.ts'
import { type Query, textIn, wholeIn } from './request-input.ts'
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
  app.get<Query>('/search', async ({ query }) => {
    const q = textIn(query, 'q')
    if (q === undefined || q.trim() === '' || q.length > longestQuery)
      throw new InputError(
        `q is ${q === undefined ? 'missing' : quoted(q)}; allowed: 1 to ${longestQuery} characters of a name`,
      )
    return status.search(q, wholeIn(query, 'limit', usuallyFound, 1, maxFound))
  })

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
