// The cost for Redis: its processor time and the commands that it has processed, including those within scripts.

import { Redis } from 'ioredis'
import type { Scope } from '../../test/scenarios/set-up.ts'
import { cpuSecondsOf } from './pinned.ts'

type RedisCost = { readonly cpuSeconds: number; readonly commands: number }

/** Both since the start of the server. Each reading is a command itself. */
export type ReadRedis = () => Promise<RedisCost>

export const readerOfRedis = (scope: Scope, redisUrl: string): ReadRedis => {
  const redis = new Redis(redisUrl)
  scope.teardown(() => redis.quit())
  return async () => {
    const text = await redis.info()
    const of = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)?.[1])
    return { cpuSeconds: await cpuSecondsOf(of('process_id')), commands: of('total_commands_processed') }
  }
}
