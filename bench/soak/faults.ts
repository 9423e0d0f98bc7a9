// The faults of a long run: a second of one in every hundred, each in turn, at the provider or at Redis. Whether the run
// can stand them is judged elsewhere.

import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Scope } from '../../test/scenarios/set-up.ts'
import type { ProviderProcess } from '../../test/support/provider-process.ts'

const everyMs = 100_000
const lastsMs = 1_000

type Fault = { readonly name: string; begin(): Promise<unknown>; end(): Promise<unknown> }

const nothing = async (): Promise<void> => {}

const faultsOf = (provider: ProviderProcess, redis: Redis): Fault[] => {
  const mode = (fault: string): Fault => ({
    name: `the provider: ${fault}`,
    begin: () => provider.steer({ fault }),
    end: () => provider.steer({ fault: 'none' }),
  })
  return [
    mode('internal-error'),
    {
      name: 'Redis ends all connections',
      begin: () => redis.call('CLIENT', 'KILL', 'TYPE', 'normal'),
      end: nothing,
    },
    mode('hang'),
    {
      name: 'Redis answers nothing',
      begin: () => redis.call('CLIENT', 'PAUSE', String(lastsMs), 'ALL'),
      end: nothing,
    },
    mode('gaps'),
    {
      name: 'Redis ends the connections for messages',
      begin: () => redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub'),
      end: nothing,
    },
  ]
}

/** Begins them; the function returned ends them, and says how often each came. */
export const beginFaults = (scope: Scope, provider: ProviderProcess, redisUrl: string) => {
  const redis = new Redis(redisUrl)
  scope.teardown(() => redis.disconnect())
  const faults = faultsOf(provider, redis)
  const times = new Map<string, number>()
  let i = 0
  let end: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    const fault = faults[i++ % faults.length]
    if (!fault) return
    times.set(fault.name, (times.get(fault.name) ?? 0) + 1)
    end = fault
      .begin()
      .then(() => pause(lastsMs))
      .then(fault.end)
  }, everyMs)
  scope.teardown(() => clearInterval(timer))
  return async (): Promise<ReadonlyMap<string, number>> => {
    clearInterval(timer)
    await end
    return times
  }
}
