// The ops listener, for those who run the gateway: the probes, and all that operator-routes.ts answers. On a port of its
// own, loopback by default; consumers never see it. Which requests are admitted stands in admission.ts, which paths there
// are in routes.ts, the bounds in bounded-server.ts.

import type { FastifyInstance } from 'fastify'
import { type AdmissionOptions, createAdmit } from './admission.ts'
import { type BoundedServer, createBoundedServer, type ServerBounds } from './bounded-server.ts'
import type { OperatorParts } from './operator-routes.ts'
import { isProbePath, type Probes } from './probes.ts'
import { routeFault, routeOfOps } from './routes.ts'

export type OpsParts = OperatorParts & { readonly probes: Probes }

export type OpsOptions = Omit<AdmissionOptions, 'section'> &
  Pick<ServerBounds, 'maxConnections' | 'requestTimeoutMs'> & {
    /** For an answer to be made and read, beside the provider's own time. */
    readonly answerWithinMs?: number
  }

export const buildOps = ({ probes, ...parts }: OpsParts, options: OpsOptions): BoundedServer => {
  const admit = createAdmit({ ...options, section: 'ops' })
  const paths = `/ (the dashboard), /livez, /readyz, /metrics, /status, /cells, /search?q=…, /events, /cache/cell?of=…, POST /cache/refresh?of=…, POST /cache/purge, /cache/warm, /keys, /keys/ID, /subscribers, /usage or /provider${parts.passthrough.protocol.paths[0]}?…`
  let rest: Promise<FastifyInstance> | undefined
  const openRest = async () =>
    (await import('./operator-routes.ts')).buildOperatorRoutes(parts, () =>
      maxStreamsAmong(options.maxConnections),
    )

  const listener = createBoundedServer(
    async (request, response, withoutDeadline) => {
      const { url = '', method = '' } = request
      const [path = ''] = url.split('?', 1)
      const route = routeOfOps(path)
      const refusal = admit(request, route) ?? routeFault(method, route, paths)
      if (refusal) throw refusal
      if (isProbePath(path)) return probes.answer(path, response)
      if (route?.streams) withoutDeadline()
      rest ??= openRest()
      ;(await rest).routing(request, response)
    },
    parts.observer,
    {
      ...options,
      answerWithinMs: (options.answerWithinMs ?? 30_000) + parts.passthrough.totalTimeoutMs(),
    },
  )
  return {
    ...listener,
    close: async () => {
      await listener.close()
      await (await rest)?.close()
    },
  }
}

// Each holds a connection for as long as its page is open, and probes need some too.
const maxStreams = 8
const maxStreamsAmong = (connections: number): number => Math.min(maxStreams, Math.floor(connections / 2))
