// The ops listener, for those who run the gateway: is it alive, does it want traffic, what has it counted; all else is
// for operator-routes.ts. On a port of its own, loopback unless told otherwise; consumers never see it.

import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { messageOf } from '../errors.ts'
import type { Metrics } from './metrics.ts'
import type { OperatorParts } from './operator-routes.ts'
import type { Readiness } from './readiness.ts'

// Imported by name it would load Node's own client for fetch too, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

export type OpsParts = OperatorParts & { readonly metrics: Metrics; readonly readiness: Readiness }

export type OpsListener = {
  readonly server: Server
  listen(at: { readonly host: string; readonly port: number }): Promise<unknown>
  /** Breaks off what is still connected. */
  close(): Promise<void>
}

type Told = readonly [status: number, type: string, body: string]

const json = (status: number, body: object): Told => [
  status,
  'application/json; charset=utf-8',
  JSON.stringify(body),
]

export const buildOps = ({ metrics, readiness, ...parts }: OpsParts): OpsListener => {
  let rest: Promise<FastifyInstance> | undefined
  const openRest = async () => (await import('./operator-routes.ts')).buildOperatorRoutes(parts)

  const probes = new Map<string | undefined, () => Told | Promise<Told>>([
    ['/livez', () => json(200, { status: 'live' })],
    [
      '/readyz',
      async () => {
        const report = await readiness.report()
        return json(report.status === 'ready' ? 200 : 503, report)
      },
    ],
    ['/metrics', async () => [200, metrics.contentType, await metrics.exposition()]],
  ])

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const probe = isRead ? probes.get(request.url?.split('?', 1)[0]) : undefined
    if (!probe) {
      rest ??= openRest()
      ;(await rest).routing(request, response)
      return
    }
    const [status, type, body] = await probe()
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      response.writeHead(500, { 'content-type': 'application/json; charset=utf-8' })
      response.end(JSON.stringify({ error: messageOf(error) }))
    })
  })

  return {
    server,
    listen: ({ host, port }) => once(server.listen(port, host), 'listening'),
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await (await rest)?.close()
    },
  }
}
