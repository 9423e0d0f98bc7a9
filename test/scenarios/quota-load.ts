// Load on quotas: gateways on one Redis, callers on kept connections with one request at a time, and the rate-limit headers
// of their responses. All quota scenarios use it; each adds its own fault.

import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Running } from '../support/process.ts'
import type { Teardown } from '../support/teardown.ts'
import { type Caller, openCallers } from './callers.ts'
import { quietZone } from './keys.ts'
import { type Env, processEnv, startProcess } from './set-up.ts'

const path = '/api/v1/locations?type=division'

/** Needs no provider: these scenarios request no weather. */
export const meterEnv = (more: Env): Env =>
  processEnv('http://127.0.0.1:9', { ABOHAWA_QUOTA__TIME_ZONE: quietZone(), ...more })

export type Gateways = { readonly processes: readonly Running[]; readonly callers: readonly Caller[] }

/** Callers, distributed over all processes in turn. */
export const startGateways = async (
  scope: Teardown,
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

export type Answer = {
  readonly key: string
  readonly status: number
  readonly ms: number
  /** When the request was sent, ms of `performance.now()`. */
  readonly at: number
  readonly remaining: number
  readonly reset: number
}

const numberIn = (head: string, name: string): number =>
  Number(new RegExp(`^${name}: (\\d+)`, 'im').exec(head)?.[1] ?? Number.NaN)

/** Each caller sends its next request on the response to the last, or after a pause, until `nextKey` returns undefined. */
export const sendOn = async (
  callers: readonly Caller[],
  nextKey: () => string | undefined,
  pauseMs = 0,
): Promise<Answer[]> => {
  const answers: Answer[] = []
  await Promise.all(
    callers.map(async caller => {
      for (let key = nextKey(); key !== undefined; key = nextKey()) {
        const at = performance.now()
        const { status, ms, head } = await caller.send(path, key)
        answers.push({
          key,
          status,
          ms,
          at,
          remaining: numberIn(head, 'x-ratelimit-remaining'),
          reset: numberIn(head, 'x-ratelimit-reset'),
        })
        // A closed connection sends nothing more.
        if (status === 0) return
        if (pauseMs > 0) await pause(pauseMs)
      }
    }),
  )
  return answers
}

/** Returns these keys in turn, `times` in all. */
export const inTurn = (keys: readonly string[], times: number): (() => string | undefined) => {
  let sent = 0
  return () => (sent < times ? keys[sent++ % keys.length] : undefined)
}

/** Faults in the responses of a key that must be admitted exactly up to its limit; empty when there are none. */
export const faultsOf = (answers: readonly Answer[], limit: number): string[] => {
  const admitted = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 429)
  const expected = Math.min(limit, answers.length)
  const remaining = admitted.map(answer => answer.remaining).sort((a, b) => b - a)
  const eachOnce = remaining.every((left, i) => left === limit - 1 - i)
  return [
    ...(admitted.length === expected ? [] : [`${admitted.length} of ${expected} answered 200`]),
    ...(refused.length === answers.length - expected ? [] : [`${refused.length} answered 429`]),
    ...(eachOnce ? [] : ['a remaining count was returned twice or not at all']),
    ...(refused.every(answer => answer.remaining === 0) ? [] : ['a 429 has units left']),
  ]
}

// Redis also counts commands inside a script; gateways did not send these.
const inScripts = ['hmget', 'hset', 'pexpireat', 'publish']

/** Commands that clients sent to Redis since it started. */
export const commandsSent = async (redis: Redis): Promise<number> => {
  const stats = await redis.info('commandstats')
  const calls = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)]
  return calls.reduce((sum, [, name = '', times]) => sum + (inScripts.includes(name) ? 0 : Number(times)), 0)
}
