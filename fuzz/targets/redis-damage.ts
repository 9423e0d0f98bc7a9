// Ways to replace a record in Redis: with another type, non-numeric fields or members, nothing, or very many fields.

import fc, { type Arbitrary } from 'fast-check'
import type { ChainableCommander, Redis } from 'ioredis'
import { itemAt, shares, words } from '../target.ts'

export const otherTypes = ['list', 'set', 'sorted set', 'hash', 'stream'] as const
export type OtherType = (typeof otherTypes)[number]

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
  ...words('-1 -5 abc 1e999 1e300 NaN nan inf -inf 99999999999999999999 9007199254740993 1.5 0x10 ٥ {"a":1}'),
  ...words('0 1 1000000000 2000000000'),
  ...['', ' 5', '5 ', '5 5', '-5 -5', '1 2 3', '\0', 'x'.repeat(100_000)],
]
const kinds = ['type', 'text', 'fields', 'all fields', 'more fields', 'members', 'gone', 'many'] as const

export type Damage = {
  readonly kind: (typeof kinds)[number]
  readonly type: OtherType
  readonly at: readonly number[]
  readonly values: readonly [string, string]
}

export const damages: Arbitrary<Damage> = fc.record({
  kind: fc.constantFrom('type', 'fields', ...kinds),
  type: fc.constantFrom(...otherTypes),
  at: shares(2),
  values: fc.tuple(fc.constantFrom(...junk), fc.constantFrom(...junk)),
})

export const damageText = ({ kind, type, values }: Damage): string =>
  kind === 'type'
    ? `a ${type}`
    : `${kind} ${values.map(value => JSON.stringify(value.slice(0, 30))).join(' ')}`

/** Replaces a record; its expiry is removed, unless only fields change. */
export const damage = async (
  redis: Redis,
  name: string,
  { kind, type, at, values }: Damage,
): Promise<void> => {
  const fields = (await redis.type(name)) === 'hash' ? await redis.hkeys(name) : []
  const [value, other] = values
  const step = redis.multi()
  const fieldAt = (place?: number): string => itemAt(fields, place) ?? 'used'
  const several = (names: readonly string[], text: string) =>
    Object.fromEntries(names.map(one => [one, text]))
  if (fields.length > 0 && kind === 'fields')
    step.hset(name, { [fieldAt(at[0])]: value, [fieldAt(at[1])]: other })
  else if (fields.length > 0 && kind === 'all fields') step.hset(name, several(fields, value))
  else if (fields.length > 0 && kind === 'more fields') step.hset(name, { [`${other}x`]: value })
  else if (kind === 'type') withType(step.del(name), name, type)
  else if (kind === 'members') step.del(name).zadd(name, 1, value, '-inf', other, 1e300, `${value} ${other}`)
  else if (kind === 'many') {
    const many = Array.from({ length: 20_000 }, (_, i) => `f${i}`)
    step.del(name).hset(name, several(many, value.slice(0, 20)))
  } else if (kind === 'gone') step.del(name)
  else step.set(name, value)
  await step.exec()
}
