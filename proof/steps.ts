// The words of a schedule: what a fleet starts with, and the steps that are taken with it. Plain data, so that a history
// can be kept as JSON, printed, shrunk and taken again. schedule.ts makes them from a seed.

/** Where counts, keys and the shared cache tier are: `redis` is one server, `sentinel` and `cluster` have replicas. */
export type StoreKind = 'redis' | 'sentinel' | 'cluster' | 'embedded'

/** Settings of the gateway by their path, as text; an empty text is null. */
export type Settings = Readonly<Record<string, string>>

/** The status page as JSON. */
export const statusPath = '/status.json'
/** The place that has another name after a change of the catalogue. */
export const renamedPlace = '3026'

export type PlannedRequest = {
  readonly gateway: number
  /** The name of a key of the schedule, or one that was never issued. */
  readonly key: string
  /** Below `/api/v1`, but for the status page. */
  readonly path: string
  readonly encoding?: 'gzip' | 'br'
  /** Sends the last tag that this path had with this key. */
  readonly revalidate?: true
  /** GET if not given. */
  readonly method?: 'HEAD' | 'POST'
  /** Sends what was the key before its last rotation, once it was rotated. */
  readonly former?: true
}

/** What a proxy does to the connections that pass it. */
export type LinkFault =
  | { readonly kind: 'delay'; readonly ms: number }
  /** Ends all connections, and new ones at once. */
  | { readonly kind: 'refuse' }
  /** Ends all connections once. */
  | { readonly kind: 'reset' }
  /** Ends each connection after so many bytes of replies. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Each reply by another time, so that those of several connections come in another order. */
  | { readonly kind: 'reorder'; readonly upToMs: number }
  /** Passes replies in small parts. */
  | { readonly kind: 'trickle'; readonly bytes: number; readonly everyMs: number }
  /** Keeps connections and passes nothing. */
  | { readonly kind: 'black-hole' }
  /** Replaces bytes of replies, so that they are no longer of their protocol. */
  | { readonly kind: 'corrupt'; readonly afterBytes: number }

/** What Redis itself does. With the embedded store, `full` is its disk. */
export type StoreFault = 'read-only' | 'full' | 'frozen'

/** A mode of the simulated provider, or how it delivers. */
export type ProviderFault = { readonly mode: string } | { readonly latencyMs: number }

export type Step =
  | Readonly<{ do: 'load'; requests: readonly PlannedRequest[]; inTurn?: true }>
  /** At least so long by the machine's time, too, by which connections come back. */
  | Readonly<{ do: 'move'; ms: number; realMs?: number }>
  /** To so long before the next midnight in the key's zone. */
  | Readonly<{ do: 'to-midnight'; beforeMs: number }>
  /** The link between gateways and Redis. */
  | Readonly<{ do: 'link'; id: string; gateways: readonly number[]; fault: LinkFault }>
  | Readonly<{ do: 'provider-link'; id: string; fault: LinkFault }>
  | Readonly<{ do: 'store'; id: string; fault: StoreFault }>
  | Readonly<{ do: 'provider'; id: string; fault: ProviderFault }>
  /** The end of a fault. */
  | Readonly<{ do: 'heal'; id: string }>
  /** Redis comes back without anything but keys and subscribers. */
  | Readonly<{ do: 'empty' }>
  /** Redis is killed and comes back with what it had. */
  | Readonly<{ do: 'restart-store' }>
  /** A replica takes over from a master, in order or because it is killed, while requests come; it comes back. */
  | Readonly<{ do: 'fail-over'; kill: boolean; under: readonly PlannedRequest[] }>
  /** One place has another name in the catalogue's file, and gateways read it. */
  | Readonly<{ do: 'catalogue'; name: string }>
  /** Another certificate is put in place, and gateways read it. */
  | Readonly<{ do: 'certificate' }>
  /** Connections for messages are ended. */
  | Readonly<{ do: 'drop-messages' }>
  | Readonly<{ do: 'stop'; gateway: number }>
  /** The process dies at once; with `under`, so long after a load began, when some of it may be answered. */
  | Readonly<{
      do: 'kill'
      gateway: number
      under?: { readonly requests: readonly PlannedRequest[]; readonly afterMs: number }
    }>
  /**
   * Its process stands still while the clock moves on: for so long, from the begin of a load or so long after it, and until what
   * is sent to others meanwhile has its answers.
   */
  | Readonly<{
      do: 'suspend'
      gateway: number
      afterMs?: number
      ms: number
      moveMs: number
      under: readonly PlannedRequest[]
      meanwhile?: readonly PlannedRequest[]
    }>
  | Readonly<{ do: 'start'; gateway: number; skewMs: number }>
  /** It expires after so many whole seconds, or never. */
  | Readonly<{ do: 'issue'; key: string; tier: string; expiresAfterMs?: number }>
  /** The key gets another secret, and the old one stays valid for so long. */
  | Readonly<{ do: 'rotate'; key: string; overlapMs: number }>
  | Readonly<{ do: 'revoke'; key: string }>
  | Readonly<{ do: 'tier'; key: string; tier: string }>
  | Readonly<{ do: 'configure'; settings: Settings }>
  | Readonly<{ do: 'purge'; gateway: number; kind: 'soft' | 'hard' }>
  | Readonly<{ do: 'run'; fault: 'late' | 'withdrawn' | 'none' }>

/** What consumers speak to the gateways. */
export type Protocol = 'http' | 'https' | 'http2'

export type Schedule = {
  readonly seed: number
  readonly protocol: Protocol
  readonly store: StoreKind
  /** Each gateway is a separate process, which can be really killed and suspended. */
  readonly hasProcesses: boolean
  /** Behind the provider there is a second one, without limits and faults. */
  readonly hasFallback?: boolean
  /** The first instant, ms since the epoch. */
  readonly start: number
  /** Of each gateway: its clock less the true one. */
  readonly skews: readonly number[]
  readonly settings: Settings
  /** Constants of the gateways that differ from those of other schedules. */
  readonly constants?: Settings
  /** Tier by the name of a key that exists from the start. */
  readonly keys: Readonly<Record<string, string>>
  /** The endpoints that a key is bound to, by its name; the other keys are bound to nothing. */
  readonly bound?: Readonly<Record<string, readonly string[]>>
  readonly steps: readonly Step[]
}
