// Where a gateway of a history runs, and what can be done with one, in this process or in a separate one.

import type { Protocol, Settings } from '../steps.ts'
import type { FleetClock } from './clock.ts'
import type { LaneRedis } from './redis.ts'

export type Site = {
  readonly clock: FleetClock
  readonly protocol: Protocol
  /** A Redis, or the file of the embedded store. */
  readonly store: Pick<LaneRedis, 'settings' | 'server'> | { readonly path: string }
  readonly providerUrl: string
  /** Of a second provider behind it. */
  readonly fallbackUrl: string | undefined
  /** Where gateways have separate processes: a folder for their files, and the fault that is planted in them. */
  readonly processes: { readonly folder: string; readonly sabotage: string | undefined } | undefined
  readonly constants: Settings
  /** The settings in force, which may change while it runs. */
  readonly settings: () => Settings
  /** Takes a line of the log of a gateway in this process. */
  readonly logged: (line: string) => void
}

/** A gateway, in this process or in a separate one. */
export type Running = {
  readonly apiUrl: string
  readonly opsUrl: string
  configure(): Promise<string>
  readCatalogue(): Promise<void>
  /** In order, as on SIGTERM. */
  stop(): Promise<void>
  /** Resolves when it is dead. */
  kill(): Promise<void>
  /** Where it has a separate process: whether that gets its turns; undefined while it is suspended. */
  ping?(): Promise<unknown> | undefined
  suspend?(): void
  resume?(): void
}
