// The Redis of a lane, and one that is a single server process: kept from history to history, and the faults of a server. A
// history has it empty at its begin. Counts are removed as a server that lost its file would have them, and keys of consumers
// stay. Those with replicas are in replicated-redis.ts.

import type { Redis } from 'ioredis'
import { durable, startRedis } from '../../test/support/redis-server.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { until } from '../../test/support/until.ts'
import type { Settings, StoreFault } from '../steps.ts'

export type LaneRedis = {
  /** Where gateways find it. */
  readonly settings: Settings
  /** Ends all faults, and empties it. */
  clear(): Promise<void>
  /** Loses all but the records of keys and subscribers, and all connections in the same step. */
  empty(): Promise<void>
  /** A PING of a connection that no fault of a link concerns; undefined while Redis is not to answer. */
  ping(): Promise<unknown> | undefined
  /** Ends the connections for messages. */
  dropMessages(): Promise<void>
  /** Where it has replicas: another server takes over from one, which is killed or not. */
  failOver?(isKilled: boolean): Promise<void>
  /** Where it is one server. */
  readonly server?: {
    readonly port: number
    begin(fault: StoreFault): Promise<void>
    end(fault: StoreFault): Promise<void>
    /** SIGKILL, and a start with what was written before. */
    restart(): Promise<void>
  }
}

const records = /^[^:]+:(?:key|key-of|keys|external-id|subscriber|subscriber-name|subscribers|format)(?::|$)/

// A command with keys of several slots is refused by a cluster, and a script that names none is not.
const removeLua = `#!lua flags=allow-cross-slot-keys
for _, name in ipairs(ARGV) do redis.call('DEL', name) end`

/** Removes all but the records of keys, and ends all connections in the same step. */
export const emptyBut = async (admin: Redis): Promise<void> => {
  const lost = (await admin.keys('*')).filter(name => !records.test(name))
  const transaction = admin.multi()
  transaction.eval(removeLua, 0, ...lost)
  transaction.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  transaction.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  const [failure] = (await transaction.exec())?.flatMap(([error]) => error ?? []) ?? []
  if (failure) throw failure
}

export const openSingleRedis = async (scope: Teardown): Promise<LaneRedis> => {
  const server = await startRedis(scope, { args: durable })
  const { admin } = server
  let present: StoreFault | undefined
  let isStarting = false
  const thaw = (): void => {
    if (present !== 'frozen') return
    server.signal('SIGCONT')
    present = undefined
  }
  const end = async (ended: StoreFault): Promise<void> => {
    thaw()
    present = undefined
    if (ended === 'read-only') await admin.call('REPLICAOF', 'NO', 'ONE')
    if (ended === 'full') await admin.call('CONFIG', 'SET', 'maxmemory', '0')
  }
  const begin = async (begun: StoreFault): Promise<void> => {
    present = begun
    if (begun === 'read-only') await admin.call('REPLICAOF', '127.0.0.1', '1')
    if (begun === 'full') await admin.call('CONFIG', 'SET', 'maxmemory', '100kb')
    if (begun === 'frozen') server.signal('SIGSTOP')
  }
  return {
    settings: { 'redis.url': server.url },
    clear: async () => {
      thaw()
      await end('read-only')
      await end('full')
      await admin.flushall()
    },
    empty: async () => {
      // One that is full or read-only takes no transaction.
      const kept = present
      if (kept) await end(kept)
      await emptyBut(admin)
      if (kept) await begin(kept)
    },
    ping: () => (isStarting || present === 'frozen' ? undefined : admin.ping().catch(() => {})),
    dropMessages: async () => {
      await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    },
    server: {
      port: server.port,
      begin,
      end,
      restart: async () => {
        thaw()
        isStarting = true
        await server.kill()
        await server.start()
        await until('Redis has its file', async () => (await admin.ping()) === 'PONG')
        isStarting = false
      },
    },
  }
}
