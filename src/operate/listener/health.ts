// The health listener: the probes alone, on a port that the network may reach while the ops listener stays inside. Needs
// no token; names, pages and bounds are checked as on the ops listener.

import { type AdmissionOptions, createAdmit } from './admission.ts'
import { type BoundedServer, createBoundedServer, type ServerBounds } from './bounded-server.ts'
import { isProbePath, type Probes } from './probes.ts'
import type { RefusalObserver } from './refusal.ts'
import { routeFault, routeOfHealth } from './routes.ts'

export type HealthParts = { readonly probes: Probes; readonly observer: RefusalObserver }

export type HealthOptions = Pick<AdmissionOptions, 'host' | 'allowedHosts'> &
  Pick<ServerBounds, 'maxConnections' | 'requestTimeoutMs'>

const answerWithinMs = 30_000

export const buildHealth = (
  { probes, observer }: HealthParts,
  { host, allowedHosts, maxConnections, requestTimeoutMs }: HealthOptions,
): BoundedServer => {
  const admit = createAdmit({ section: 'health', host, allowedHosts, token: null })
  return createBoundedServer(
    async (request, response) => {
      const { url = '', method = '' } = request
      const [path = ''] = url.split('?', 1)
      const route = routeOfHealth(path)
      const refusal = admit(request, route) ?? routeFault(method, route, '/livez, /readyz or /metrics')
      if (refusal) throw refusal
      if (isProbePath(path)) await probes.answer(path, response)
    },
    observer,
    { maxConnections, requestTimeoutMs, answerWithinMs },
  )
}
