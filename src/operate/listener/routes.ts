// The paths of the ops listener and the health listener, which methods each takes, and whether it needs the token. Checked before any
// handler is loaded, so a path that is not here has no handler either.

import { assets } from '../dashboard/dashboard.ts'
import { type ProbePath, probePaths } from './probes.ts'
import { Refusal } from './refusal.ts'

export type Route = {
  readonly methods: readonly string[]
  /**
   * Answered without the token. For what any client of the listener may have: health, metrics, and the fixed files of a
   * page; never for the data that such a page shows.
   */
  readonly public?: true
  /** Spends the provider's quota, with a request that a browser may send for a page, an image, a link or a form. */
  readonly spends?: true
  /** Reads or changes keys and subscribers: refused unless a token is configured. */
  readonly administers?: true
  readonly probe?: ProbePath
  readonly streams?: true
}

export type Routes = (path: string) => Route | undefined

const reads = ['GET', 'HEAD']

const healthRoutes: ReadonlyMap<string, Route> = new Map(
  probePaths.map(path => [path, { methods: reads, public: true, probe: path }]),
)

const opsRoutes: ReadonlyMap<string, Route> = new Map([
  ...healthRoutes,
  ...assets.map(({ path }): [path: string, route: Route] => [path, { methods: reads, public: true }]),
  ['/cache/cell', { methods: reads }],
  ['/cache/purge', { methods: ['POST'] }],
  ['/cache/warm', { methods: [...reads, 'POST', 'DELETE'] }],
  ['/cache/refresh', { methods: ['POST'], spends: true }],
  ['/status', { methods: reads }],
  ['/cells', { methods: reads }],
  ['/search', { methods: reads }],
  ['/events', { methods: ['GET'], streams: true }],
])

/** Which paths there are below it is the protocol's. */
const providerRoute: Route = { methods: reads, spends: true }

const administers = true
const keyRoutes: readonly [path: RegExp, route: Route][] = [
  [/^\/keys$/, { methods: [...reads, 'POST'], administers }],
  [/^\/(?:keys|subscribers)\/[^/]+$/, { methods: reads, administers }],
  [/^\/keys\/[^/]+\/(?:rotate|revoke|reinstate|tier|limit|expire)$/, { methods: ['POST'], administers }],
  [/^\/subscribers\/[^/]+\/(?:revoke|reinstate)$/, { methods: ['POST'], administers }],
  [/^\/keys\/[^/]+\/usage$|^\/(?:subscribers|usage)$/, { methods: reads, administers }],
]

export const routeOfOps: Routes = path =>
  opsRoutes.get(path) ??
  (path.startsWith('/provider/') ? providerRoute : keyRoutes.find(([pattern]) => pattern.test(path))?.[1])

export const routeOfHealth: Routes = path => healthRoutes.get(path)

/** @param paths what there is, as text */
export const routeFault = (method: string, route: Route | undefined, paths: string): Refusal | undefined => {
  if (!route) return new Refusal(404, 'path', `there is nothing here; try ${paths}`)
  if (route.methods.includes(method)) return undefined
  const allow = route.methods.join(', ')
  return new Refusal(405, 'method', `the method is ${method}; allowed: ${allow}`, { allow })
}
