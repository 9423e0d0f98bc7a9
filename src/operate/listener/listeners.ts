// The ops listener, for those who run the gateway: the probes, and all that operator-routes.ts answers, on a port of its own that
// consumers never see. The health listener: the probes alone, on a port that the network may reach while the other stays inside, and
// without a token. Which requests are admitted stands in admission.ts, which paths there are in routes.ts, the bounds in server.ts.

import type { FastifyInstance } from 'fastify'
import { type AdmissionOptions, type Admit, createAdmit } from './admission.ts'
import type { OperatorParts } from './operator-routes.ts'
import type { Probes } from './probes.ts'
import type { RefusalObserver } from './refusal.ts'
import { healthRoutes, opsRoutes } from './routes.ts'
import { type BoundedServer, createBoundedServer, type Handle, type ServerBounds } from './server.ts'

export type OpsParts = OperatorParts & { readonly probes: Probes }

type Bounds = Pick<ServerBounds, 'maxConnections' | 'requestTimeoutMs'>

export type OpsOptions = Omit<AdmissionOptions, 'section'> &
  Bounds & {
    /** For an answer to be made and read, beside the provider's own time. */
    readonly answerWithinMs?: number
  }

const answerWithinMs = 30_000

export const buildOps = ({ probes, ...parts }: OpsParts, options: OpsOptions): BoundedServer => {
  const { passthrough, observer } = parts
  const paths = `/ (the dashboard), /livez, /readyz, /metrics, /status, /cells, /search?q=…, /cache/cell?of=…, POST /cache/refresh?of=…, POST /cache/purge, /cache/warm, /keys, /keys/ID, /subscribers, /usage or /provider${passthrough.protocol.paths[0]}?…`
  let rest: Promise<FastifyInstance> | undefined
  const openRest = async () => (await import('./operator-routes.ts')).buildOperatorRoutes(parts)
  const admit = createAdmit({ ...options, section: 'ops' }, opsRoutes, paths)
  const handle = answering(admit, probes, async (...pair) => {
    rest ??= openRest()
    ;(await rest).routing(...pair)
  })
  const ownMs = options.answerWithinMs ?? answerWithinMs
  const listener = createBoundedServer(handle, observer, {
    ...options,
    answerWithinMs: ownMs + passthrough.totalTimeoutMs(),
  })
  return {
    ...listener,
    close: async () => {
      await listener.close()
      await (await rest)?.close()
    },
  }
}

export const buildHealth = (
  { probes, observer }: { readonly probes: Probes; readonly observer: RefusalObserver },
  { host, allowedHosts, ...bounds }: Pick<AdmissionOptions, 'host' | 'allowedHosts'> & Bounds,
): BoundedServer => {
  const admission = { section: 'health', host, allowedHosts, token: null } as const
  const admit = createAdmit(admission, healthRoutes, '/livez, /readyz or /metrics')
  const handle = answering(admit, probes, async () => {})
  return createBoundedServer(handle, observer, { ...bounds, answerWithinMs })
}

/** Refuses, answers a probe, or passes on. */
const answering =
  (
    admit: Admit,
    probes: Probes,
    passOn: (...pair: Parameters<FastifyInstance['routing']>) => Promise<void>,
  ): Handle =>
  async (request, response) => {
    const { probe } = admit(request)
    if (probe) return probes.answer(probe, response)
    await passOn(request, response)
  }
