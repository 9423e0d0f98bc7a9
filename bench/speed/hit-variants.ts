// The variants of our gateway that the row of hits compares: the embedded store and Redis, one key and many, the access log,
// 304 and br responses, and requests for every place in turn.

import { join } from 'node:path'
import type { Env, Scope } from '../../test/scenarios/set-up.ts'
import { count } from '../row.ts'
import type { Absent, Contender, World } from './contender.ts'
import { everyPlace, logged, startVariants, type Variant } from './gateways.ts'

const variants: readonly Variant[] = [
  { id: 'embedded', name: 'Abohawa, embedded store', server: 'embedded' },
  { id: 'embedded-log', name: 'Abohawa, embedded store, access log to a file', server: 'embeddedLog' },
  { id: 'redis', name: 'Abohawa, Redis, 1 key', server: 'redis' },
  { id: 'redis-1000', name: 'Abohawa, Redis, 1,000 keys in turn', server: 'redis', keys: 1_000 },
  { id: 'redis-log', name: 'Abohawa, Redis, 1 key, access log to a file', server: 'redisLog' },
  { id: 'redis-304', name: 'Abohawa, Redis, 1 key, 304', server: 'redis', expects: '304' },
  { id: 'redis-br', name: 'Abohawa, Redis, 1 key, br', server: 'redis', expects: 'br' },
  {
    id: 'places',
    name: `Abohawa, Redis, 1 key, ${count(everyPlace.length)} places in turn`,
    server: 'places',
    paths: everyPlace,
  },
]

export const hitVariantIds = variants.map(({ id }) => id)

export const startHitVariants = (
  scope: Scope,
  world: World,
  wanted: readonly string[],
): Promise<(Contender | Absent)[]> => {
  const onRedis = { ABOHAWA_REDIS__URL: world.redisUrl ?? '' }
  const servers: Record<string, Env> = {
    embedded: { ABOHAWA_STORE__PATH: join(world.folder, 'embedded.db') },
    redis: onRedis,
    // A process of its own, so that the others cache one body as their peers do.
    places: { ...onRedis, ABOHAWA_REDIS__PREFIX: 'places:' },
    embeddedLog: { ABOHAWA_STORE__PATH: join(world.folder, 'logged.db'), ...logged },
    redisLog: { ...onRedis, ABOHAWA_REDIS__PREFIX: 'logged:', ...logged },
  }
  return startVariants(
    scope,
    world,
    variants.filter(({ id }) => wanted.includes(id)),
    servers,
  )
}
