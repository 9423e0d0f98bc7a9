// Load on quotas: gateways on one Redis, callers on kept connections that ask one after the other, and what their answers
// said of the quota. Scenarios of quotas begin here; what befalls the fleet meanwhile is theirs.

import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { systemClock } from '../../src/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openStore } from '../../src/stores/open-store.ts'
import type { Running } from '../support/process.ts'
import { type Caller, openCallers } from './callers.ts'
import { quietZone } from './keys.ts'
import { type Env, processEnv, type Scope, startProcess } from './set-up.ts'

const path = '/api/v1/locations?type=division'

/** No weather is asked for, so there need be no provider behind the address. */
export const meterEnv = (more: Env): Env =>
  processEnv('http://127.0.0.1:9', { ABOHAWA_QUOTA__TIME_ZONE: quietZone(), ...more })

/** For scenarios that are about no outage: a machine that is held up must not look like one. */
export const patient: Env = { ABOHAWA_REDIS__COMMAND_TIMEOUT: '10s' }

/** What a key used on each of the days, in their order. */
export const usedOn = async (env: Env, id: string, days: readonly string[]): Promise<number[]> => {
  const store = await openStore(loadConfig({ files: [], env }), systemClock, {
    redisAway: () => {},
    redisBack: () => {},
  })
  try {
    return await store.usedOn(id, days)
  } finally {
    await store.close()
  }
}

export type Gateways = { readonly processes: readonly Running[]; readonly callers: readonly Caller[] }

/** Callers in turn over all processes. */
export const startGateways = async (
  scope: Scope,
  env: Env,
  { processes, connections }: { processes: number; connections: number },
): Promise<Gateways> => {
  const started = await Promise.all(Array.from({ length: processes }, () => startProcess(scope, env)))
  const opened = await Promise.all(
    started.map(({ urls }) => openCallers(scope, urls.api ?? '', '', connections / processes)),
  )
  const callers = Array.from({ length: connections / processes }, (_, i) =>
    opened.flatMap(one => one[i] ?? []),
  )
  return { processes: started, callers: callers.flat() }
}

export type Asked = {
  readonly key: string
  readonly status: number
  readonly ms: number
  /** When it was asked, ms of `performance.now()`. */
  readonly at: number
  readonly remaining: number
  readonly reset: number
}

const numberIn = (head: string, name: string): number =>
  Number(new RegExp(`^${name}: (\\d+)`, 'im').exec(head)?.[1] ?? Number.NaN)

/** Every caller asks again as soon as it is answered, or after a rest, while there is a key to ask with. */
export const askOn = async (
  callers: readonly Caller[],
  nextKey: () => string | undefined,
  restMs = 0,
): Promise<Asked[]> => {
  const answers: Asked[] = []
  await Promise.all(
    callers.map(async caller => {
      for (let key = nextKey(); key !== undefined; key = nextKey()) {
        const at = performance.now()
        const { status, ms, head } = await caller.ask(path, key)
        answers.push({
          key,
          status,
          ms,
          at,
          remaining: numberIn(head, 'x-ratelimit-remaining'),
          reset: numberIn(head, 'x-ratelimit-reset'),
        })
        // A connection that is gone asks no further.
        if (status === 0) return
        if (restMs > 0) await pause(restMs)
      }
    }),
  )
  return answers
}

/** So many keys, in turn. */
export const inTurn = (keys: readonly string[], times: number): (() => string | undefined) => {
  let asked = 0
  return () => (asked < times ? keys[asked++ % keys.length] : undefined)
}

/** What is wrong with the answers of a key of which exactly the limit had to be given; nothing when all is right. */
export const faultsOf = (answers: readonly Asked[], limit: number): string[] => {
  const given = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 429)
  const expected = Math.min(limit, answers.length)
  const remaining = given.map(answer => answer.remaining).sort((a, b) => b - a)
  const eachOnce = remaining.every((left, i) => left === limit - 1 - i)
  return [
    ...(given.length === expected ? [] : [`${given.length} of ${expected} answered 200`]),
    ...(refused.length === answers.length - expected ? [] : [`${refused.length} answered 429`]),
    ...(eachOnce ? [] : ['a count was told twice or not at all']),
    ...(refused.every(answer => answer.remaining === 0) ? [] : ['a 429 says that something is left']),
  ]
}

// What the script of a trip does inside Redis is no command of a gateway's.
const inScripts = ['hmget', 'hset', 'pexpireat', 'publish']

/** Commands that clients sent to Redis since it started. */
export const commandsSent = async (redis: Redis): Promise<number> => {
  const stats = await redis.info('commandstats')
  const calls = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)]
  return calls.reduce((sum, [, name = '', times]) => sum + (inScripts.includes(name) ? 0 : Number(times)), 0)
}
