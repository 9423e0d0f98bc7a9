// nginx with Lua and Redis under the mix, with its access log, and with 1,000 keys on one URL without it.

import { truncate } from 'node:fs/promises'
import type { Scope } from '../../test/scenarios/set-up.ts'
import { type Absent, type Contender, get, path, type World } from './contender.ts'
import { linesOf } from './gateways.ts'
import { type Mix, receiverOf } from './mix-traffic.ts'
import { meteredNginx, openNginx } from './nginx.ts'

const ofMix = {
  id: 'mix-nginx',
  name: 'nginx + Lua + Redis at the same guarantees, the mix, access log to a file',
}
const ofKeys = { id: 'mix-nginx-keys', name: 'nginx + Lua + Redis, one URL, 1,000 keys in turn, no log' }

export const startNginxForMix = async (
  scope: Scope,
  world: World,
  mix: Mix,
  keys: readonly string[],
): Promise<(Contender | Absent)[]> => {
  const origin = { url: world.referenceUrl, key: world.referenceKey }
  const nginx = await openNginx(scope, world, { keys, origin, name: 'nginx-mix' })
  if (typeof nginx === 'string') return [ofMix, ofKeys].map(one => ({ ...one, absent: nginx }))
  const receiver = receiverOf(world, mix, { url: nginx.logged, keys, hasOurEtags: true })
  return [
    {
      ...ofMix,
      pid: nginx.pid,
      renew: async () => {
        await nginx.restart()
        await receiver.warmAnew()
      },
      usesRedis: true,
      workload: receiver.workload,
      check: async () => {
        await receiver.check()
        nginx.expectHeaders(await get(nginx.logged + path, { 'x-api-key': keys[0] ?? '' }))
      },
      counters: async () => ({ counted: await nginx.counted(), logged: await linesOf(nginx.log) }),
      tidy: async () => {
        await receiver.warm()
        await truncate(nginx.log)
      },
      settlesForMs: 1_200,
    },
    { ...ofKeys, ...meteredNginx(nginx, keys, async () => (await world.reference()).body) },
  ]
}
