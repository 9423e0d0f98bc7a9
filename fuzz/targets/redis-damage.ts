// Ways to replace a record in Redis: with another type, non-numeric fields or members, nothing, or very many fields.

import type { ChainableCommander, Redis } from 'ioredis'
import type { Random } from '../random.ts'

export const otherTypes = ['list', 'set', 'sorted set', 'hash', 'stream'] as const
type OtherType = (typeof otherTypes)[number]

/** Replaces a record with one of this type. */
export const setAs = async (redis: Redis, name: string, type: OtherType): Promise<void> => {
  await withType(redis.multi().del(name), name, type).exec()
}

// In one transaction, because the gateway may write the record in between.
const withType = (step: ChainableCommander, name: string, type: OtherType): ChainableCommander => {
  if (type === 'list') return step.rpush(name, 'a', 'b')
  if (type === 'set') return step.sadd(name, 'a', 'b')
  if (type === 'sorted set') return step.zadd(name, 1, 'a', 'inf', 'b')
  return type === 'hash' ? step.hset(name, 'a', 'b') : step.xadd(name, '*', 'a', 'b')
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

/** Replaces a record; its expiry is removed, unless only fields change. */
export const damage = async (redis: Redis, name: string, how: Damage): Promise<void> => {
  const fields = (await redis.type(name)) === 'hash' ? await redis.hkeys(name) : []
  await damaged(redis.multi(), name, how, fields).exec()
}

const damaged = (
  step: ChainableCommander,
  name: string,
  { kind, type, at, values: [value = '', other = ''] }: Damage,
  fields: readonly string[],
): ChainableCommander => {
  const field = (share = 0): string => fields[Math.floor(share * fields.length)] ?? 'used'
  const several = (names: readonly string[], text: string) =>
    Object.fromEntries(names.map(one => [one, text]))
  if (fields.length > 0 && kind === 'fields')
    return step.hset(name, { [field(at[0])]: value, [field(at[1])]: other })
  if (fields.length > 0 && kind === 'all fields') return step.hset(name, several(fields, value))
  if (fields.length > 0 && kind === 'more fields') return step.hset(name, { [`${other}x`]: value })
  const gone = step.del(name)
  switch (kind) {
    case 'gone':
      return gone
    case 'type':
      return withType(gone, name, type)
    case 'members':
      return gone.zadd(name, 1, value, '-inf', other, 1e300, `${value} ${other}`)
    case 'many':
      return gone.hset(
        name,
        several(
          Array.from({ length: 20_000 }, (_, i) => `f${i}`),
          value.slice(0, 20),
        ),
      )
    default:
      return gone.set(name, value)
  }
}
