// The words of a schedule: what a fleet starts with, and the steps that are taken with it. Plain data, so that a history
// can be kept as JSON, printed, shrunk and taken again. schedule.ts makes them from a seed.

/** Where counts, keys and the shared cache tier are: `redis` is one server, `sentinel` and `cluster` have replicas. */
export type StoreKind = 'redis' | 'sentinel' | 'cluster' | 'embedded'

/** Settings of the gateway by their path, as text; an empty text is null. */
export type Settings = Readonly<Record<string, string>>

export type PlannedRequest = {
  readonly gateway: number
  /** The name of a key of the schedule, or one that was never issued. */
  readonly key: string
  /** Below `/api/v1`. */
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
  | { readonly do: 'load'; readonly requests: readonly PlannedRequest[]; readonly inTurn?: true }
  /** At least so long by the machine's time, too, by which connections come back. */
  | { readonly do: 'move'; readonly ms: number; readonly realMs?: number }
  /** To so long before the next midnight in the key's zone. */
  | { readonly do: 'to-midnight'; readonly beforeMs: number }
  /** The link between gateways and Redis. */
  | {
      readonly do: 'link'
      readonly id: string
      readonly gateways: readonly number[]
      readonly fault: LinkFault
    }
  | { readonly do: 'provider-link'; readonly id: string; readonly fault: LinkFault }
  | { readonly do: 'store'; readonly id: string; readonly fault: StoreFault }
  | { readonly do: 'provider'; readonly id: string; readonly fault: ProviderFault }
  /** The end of a fault. */
  | { readonly do: 'heal'; readonly id: string }
  /** Redis comes back without anything but keys and subscribers. */
  | { readonly do: 'empty' }
  /** Redis is killed and comes back with what it had. */
  | { readonly do: 'restart-store' }
  /** A replica takes over from a master, in order or because it is killed, while requests come; it comes back. */
  | { readonly do: 'fail-over'; readonly kill: boolean; readonly under: readonly PlannedRequest[] }
  /** One place has another name in the catalogue's file, and gateways read it. */
  | { readonly do: 'catalogue'; readonly name: string }
  /** Another certificate is put in place, and gateways read it. */
  | { readonly do: 'certificate' }
  /** Connections for messages are ended. */
  | { readonly do: 'drop-messages' }
  | { readonly do: 'stop'; readonly gateway: number }
  /** The process dies at once; with `under`, so long after a load began, when some of it may be answered. */
  | {
      readonly do: 'kill'
      readonly gateway: number
      readonly under?: { readonly requests: readonly PlannedRequest[]; readonly afterMs: number }
    }
  /**
   * Its process stands still while the clock moves on: for so long, from the begin of a load or so long after it, and until what
   * is sent to others meanwhile has its answers.
   */
  | {
      readonly do: 'suspend'
      readonly gateway: number
      readonly afterMs?: number
      readonly ms: number
      readonly moveMs: number
      readonly under: readonly PlannedRequest[]
      readonly meanwhile?: readonly PlannedRequest[]
    }
  | { readonly do: 'start'; readonly gateway: number; readonly skewMs: number }
  | {
      readonly do: 'issue'
      readonly key: string
      readonly tier: string
      /** Whole seconds; without it the key never expires. */
      readonly expiresAfterMs?: number
    }
  /** The key gets another secret, and the former one stays valid for so long. */
  | { readonly do: 'rotate'; readonly key: string; readonly overlapMs: number }
  | { readonly do: 'revoke'; readonly key: string }
  | { readonly do: 'tier'; readonly key: string; readonly tier: string }
  | { readonly do: 'configure'; readonly settings: Settings }
  | { readonly do: 'purge'; readonly gateway: number; readonly kind: 'soft' | 'hard' }
  | { readonly do: 'run'; readonly fault: 'late' | 'withdrawn' | 'none' }

/** What consumers speak to the gateways. */
export type Protocol = 'http' | 'https' | 'http2'

export type Schedule = {
  readonly seed: number
  readonly protocol: Protocol
  readonly store: StoreKind
  /** Each gateway is a process of its own, which can be really killed and suspended. */
  readonly hasProcesses: boolean
  /** The first instant, ms since the epoch. */
  readonly start: number
  /** Of each gateway: its clock less the true one. */
  readonly skews: readonly number[]
  readonly settings: Settings
  /** Constants of the gateways that differ from those of other schedules. */
  readonly constants?: Settings
  /** Tier by the name of a key that exists from the start. */
  readonly keys: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
}
