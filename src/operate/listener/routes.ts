// The paths of the ops listener and the health listener, which methods each takes, and whether it needs the token. admission.ts
// looks them up before any handler is loaded, so a path that is not here has no handler either.

import { assets } from '../dashboard/dashboard.ts'
import { type ProbePath, probePaths } from './probes.ts'

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
}

/** By their paths, and by what their paths match. */
export type Routes = {
  readonly fixed: ReadonlyMap<string, Route>
  readonly matching: readonly (readonly [path: RegExp, route: Route])[]
}

const reads = ['GET', 'HEAD']

export const healthRoutes: Routes = {
  fixed: new Map(probePaths.map(path => [path, { methods: reads, public: true, probe: path }])),
  matching: [],
}

const opsPaths: Routes['fixed'] = new Map([
  ...healthRoutes.fixed,
  ...assets.map(({ path }): [path: string, route: Route] => [path, { methods: reads, public: true }]),
  ['/cache/cell', { methods: reads }],
  ['/cache/purge', { methods: ['POST'] }],
  ['/cache/warm', { methods: [...reads, 'POST', 'DELETE'] }],
  ['/cache/refresh', { methods: ['POST'], spends: true }],
  ['/status', { methods: reads }],
  ['/cells', { methods: reads }],
  ['/search', { methods: reads }],
])

const administers = true
export const opsRoutes: Routes = {
  fixed: opsPaths,
  matching: [
    // Which paths there are below it is the protocol's.
    [/^\/provider\//, { methods: reads, spends: true }],
    [/^\/keys$/, { methods: [...reads, 'POST'], administers }],
    [/^\/(?:keys|subscribers)\/[^/]+$/, { methods: reads, administers }],
    [
      /^\/keys\/[^/]+\/(?:rotate|revoke|reinstate|tier|limit|expire|restrictions|rates)$/,
      { methods: ['POST'], administers },
    ],
    [/^\/subscribers\/[^/]+\/(?:revoke|reinstate)$/, { methods: ['POST'], administers }],
    [/^\/keys\/[^/]+\/usage$|^\/(?:subscribers|usage|usage\/keys)$/, { methods: reads, administers }],
  ],
}
