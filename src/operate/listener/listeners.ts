// The ops listener, on a port that consumers never see. The health listener has only probes and no token, on a port that the
// network may reach.

import type { FastifyInstance } from 'fastify'
import type { Passthrough } from '../../provider/passthrough.ts'
import { type AdmissionOptions, createAdmit } from './admission.ts'
import { createApplication, type Listener } from './application.ts'
import { type Probes, registerProbes } from './probes.ts'
import type { ListenerObserver } from './refusal.ts'
import type { ServerBounds } from './server.ts'

type OpsParts = {
  readonly probes: Probes
  readonly passthrough: Pick<Passthrough, 'protocol' | 'totalTimeoutMs'>
  /** Adds all other routes. */
  readonly register: (app: FastifyInstance) => Promise<void>
  readonly observer: ListenerObserver
}

type Bounds = Pick<ServerBounds, 'maxConnections' | 'requestTimeoutMs'>

export type OpsOptions = Omit<AdmissionOptions, 'section'> &
  Bounds & {
    /** For an answer to be made and read, in addition to the provider's time. */
    readonly answerWithinMs?: number
  }

const answerWithinMs = 30_000

export const buildOps = (
  { probes, passthrough, register, observer }: OpsParts,
  options: OpsOptions,
): Listener => {
  const paths = `/ (the dashboard), /livez, /readyz, /metrics, /status, /cells, /search?q=…, /cache/cell?of=…, POST /cache/refresh?of=…, POST /cache/purge, /cache/warm, /keys, /keys/ID, /subscribers, /usage or /provider${passthrough.protocol.paths[0]}?…`
  const ownMs = options.answerWithinMs ?? answerWithinMs
  return createApplication(
    { admit: createAdmit({ ...options, section: 'ops' }), paths, observer },
    { ...options, answerWithinMs: ownMs + passthrough.totalTimeoutMs() },
    app => {
      registerProbes(app, probes)
      return register(app)
    },
  )
}

export const buildHealth = (
  { probes, observer }: Pick<OpsParts, 'probes' | 'observer'>,
  { host, allowedHosts, ...bounds }: Pick<AdmissionOptions, 'host' | 'allowedHosts'> & Bounds,
): Listener =>
  createApplication(
    {
      admit: createAdmit({ section: 'health', host, allowedHosts, token: null }),
      paths: '/livez, /readyz or /metrics',
      observer,
    },
    { ...bounds, answerWithinMs },
    async app => registerProbes(app, probes),
  )
