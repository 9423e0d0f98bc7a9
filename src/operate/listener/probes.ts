// Answers probes and Prometheus: whether the process is alive, whether it is ready, and its metrics. The ops listener and the
// health listener serve the same bytes and decide on admission.

import type { ServerResponse } from 'node:http'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Readiness } from './readiness.ts'

export type ProbeParts = {
  readonly metrics: Pick<Metrics, 'contentType' | 'exposition'>
  readonly readiness: Readiness
}

type Probe = { readonly status: number; readonly type: string; readonly body: Buffer }

export const probePaths = ['/livez', '/readyz', '/metrics'] as const

export type ProbePath = (typeof probePaths)[number]

export type Probes = {
  /** Answers a GET or HEAD of one of the paths. */
  answer(path: ProbePath, response: ServerResponse): Promise<void>
}

export const isProbePath = (path: string): path is ProbePath =>
  (probePaths as readonly string[]).includes(path)

export const createProbes = ({ metrics, readiness }: ProbeParts): Probes => {
  const probes: Record<ProbePath, () => Promise<Probe>> = {
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
  // However many requests come at once, on either listener, it is worked out once, and all get the same bytes.
  const working = new Map<ProbePath, Promise<Probe>>()
  const probed = (path: ProbePath): Promise<Probe> =>
    working.getOrInsertComputed(path, () => probes[path]().finally(() => working.delete(path)))
  return {
    answer: async (path, response) => {
      const { status, type, body } = await probed(path)
      response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body)
    },
  }
}

const json = (status: number, body: object): Probe => ({
  status,
  type: 'application/json; charset=utf-8',
  body: Buffer.from(JSON.stringify(body)),
})
