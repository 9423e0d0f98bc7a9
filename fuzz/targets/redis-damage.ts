// Ways to replace a record in Redis: by another type, by fields or members that are no numbers, by nothing, by very many.

import type { Redis } from 'ioredis'
import type { Random } from '../random.ts'

export const otherTypes = ['list', 'set', 'sorted set', 'hash', 'stream'] as const
type OtherType = (typeof otherTypes)[number]

export const setAs = async (redis: Redis, name: string, type: OtherType): Promise<void> => {
  if (type === 'list') await redis.rpush(name, 'a', 'b')
  else if (type === 'set') await redis.sadd(name, 'a', 'b')
  else if (type === 'sorted set') await redis.zadd(name, 1, 'a', 'inf', 'b')
  else if (type === 'hash') await redis.hset(name, 'a', 'b')
  else await redis.xadd(name, '*', 'a', 'b')
}

const junk = [
  '',
  '-1',
  '-5',
  'abc',
  '1e999',
  '1e300',
  'NaN',
  'nan',
  'inf',
  '-inf',
  '99999999999999999999',
  '9007199254740993',
  '1.5',
  ' 5',
  '5 ',
  '0x10',
  '5 5',
  '-5 -5',
  '1 2 3',
  '٥',
  '\0',
  'x'.repeat(100_000),
  '{"a":1}',
  '0',
  '1',
  '1000000000',
  '2000000000',
] as const

export type Damage = {
  readonly kind: 'type' | 'text' | 'fields' | 'all fields' | 'more fields' | 'members' | 'gone' | 'many'
  readonly type: OtherType
  readonly at: readonly number[]
  readonly values: readonly string[]
}

const kinds = [
  'type',
  'type',
  'text',
  'fields',
  'fields',
  'all fields',
  'more fields',
  'members',
  'gone',
  'many',
] as const

export const makeDamage = (random: Random): Damage => ({
  kind: random.pick(kinds),
  type: random.pick(otherTypes),
  at: [random.fraction(), random.fraction()],
  values: [random.pick(junk), random.pick(junk)],
})

export const damageText = ({ kind, type, values }: Damage): string =>
  kind === 'type'
    ? `a ${type}`
    : `${kind} ${values.map(value => JSON.stringify(value.slice(0, 30))).join(' ')}`

/** Replaces a record; its expiry goes with it. */
export const damage = async (
  redis: Redis,
  name: string,
  { kind, type, at, values }: Damage,
): Promise<void> => {
  const [value = '', other = ''] = values
  const fields = Object.keys((await redis.type(name)) === 'hash' ? await redis.hgetall(name) : {})
  const field = (share = 0): string => fields[Math.floor(share * fields.length)] ?? 'used'
  switch (kind) {
    case 'fields':
      if (fields.length === 0) return void (await redis.set(name, value))
      return void (await redis.hset(name, { [field(at[0])]: value, [field(at[1])]: other }))
    case 'more fields':
      if (fields.length === 0) return void (await redis.set(name, value))
      return void (await redis.hset(name, { [other]: value, __proto__x: value }))
    case 'all fields':
      if (fields.length === 0) return void (await redis.set(name, value))
      return void (await redis.hset(name, Object.fromEntries(fields.map(one => [one, value]))))
    default:
      await redis.del(name)
  }
  if (kind === 'type') await setAs(redis, name, type)
  if (kind === 'text') await redis.set(name, value)
  if (kind === 'members') await redis.zadd(name, 1, value, '-inf', other, 1e300, `${value} ${other}`)
  if (kind === 'many')
    await redis.hset(
      name,
      Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`f${i}`, value.slice(0, 20)])),
    )
}
