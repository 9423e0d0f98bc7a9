// The probes, the same on both listeners: alive, ready, metrics.

import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { messageOf } from '../../common/errors.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Phase } from '../instance-report.ts'
import { jsonType } from './refusal.ts'

/** The answer of /readyz. */
type ReadinessReport = { readonly status: Phase; readonly detail: Readonly<Record<string, string>> }

export type Readiness = {
  phase: Phase
  report(): Promise<ReadinessReport>
}

const notAvailable = 'not available'
// Probes share one report, so a check that hangs must not delay later ones.
const checkWithinMs = 2_000

/**
 * An unavailable store is only a detail: the cache can still be served, and all instances would turn red at the same time.
 * @param details named checks; each gives a text or throws
 */
export const createReadiness = (details: Readonly<Record<string, () => Promise<string>>>): Readiness => {
  const readiness: Readiness = {
    phase: 'starting',
    report: async () => ({
      status: readiness.phase,
      detail: Object.fromEntries(
        await Promise.all(Object.entries(details).map(async ([name, check]) => [name, await bounded(check)])),
      ),
    }),
  }
  return readiness
}

const bounded = async (check: () => Promise<string>): Promise<string> => {
  const over = new AbortController()
  try {
    return await Promise.race([
      check(),
      pause(checkWithinMs, notAvailable, { ref: false, signal: over.signal }),
    ])
  } catch (error) {
    return `${notAvailable}: ${messageOf(error)}`
  } finally {
    over.abort()
  }
}

type Probe = { readonly status: number; readonly type: string; readonly body: Buffer }

/** By their paths. */
export type Probes = Readonly<Record<string, () => Promise<Probe>>>

export const createProbes = ({
  metrics,
  readiness,
}: {
  readonly metrics: Pick<Metrics, 'contentType' | 'exposition'>
  readonly readiness: Readiness
}): Probes => {
  const json = (status: number, body: object): Probe => ({
    status,
    type: jsonType,
    body: Buffer.from(JSON.stringify(body)),
  })
  const probes: Probes = {
    '/livez': async () => json(200, { status: 'live' }),
    '/readyz': async () => {
      const report = await readiness.report()
      return json(report.status === 'ready' ? 200 : 503, report)
    },
    '/metrics': async () => ({
      status: 200,
      type: metrics.contentType,
      body: Buffer.from(await metrics.exposition()),
    }),
  }
  return Object.fromEntries(Object.entries(probes).map(([path, probe]) => [path, shared(probe)]))
}

/** Simultaneous requests on both listeners share one result. */
const shared = (probe: () => Promise<Probe>): (() => Promise<Probe>) => {
  let working: Promise<Probe> | undefined
  return () => {
    working ??= probe().finally(() => {
      working = undefined
    })
    return working
  }
}

export const registerProbes = (app: FastifyInstance, probes: Probes): void => {
  for (const [path, probe] of Object.entries(probes))
    app.get(path, { config: { public: true } }, async (_request, reply) => {
      const { status, type, body } = await probe()
      return reply.code(status).type(type).send(body)
    })
}
