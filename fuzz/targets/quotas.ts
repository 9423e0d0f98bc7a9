// Target: records in Redis of keys, quotas, usage and the budget. One record is replaced by nonsense while its key and
// healthy keys send requests: the healthy ones are counted exactly and never fail, and the damaged one recovers.

import fc from 'fast-check'
import { administerWith } from '../../src/cli/administer.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { createAdministration } from '../../src/keys/administration.ts'
import { usageTag } from '../../src/stores/redis/key-names.ts'
import { foundWithin } from '../../test/support/until.ts'
import { demand } from '../fault.ts'
import { checkAnswer } from '../http/answer-rules.ts'
import { get } from '../http/conversation.ts'
import type { Answer } from '../http/response-reader.ts'
import { dailyQuota, type Key, prefix, type System } from '../system/system.ts'
import { batchesOf, chance, type Session, type Target, upTo, weighted } from '../target.ts'
import { cellDegrees, freshCells, loadCells } from './fresh-cells.ts'
import { type Damage, damage, damages, damageText } from './redis-damage.ts'

/** Records by the prefix of their names; those of a key contain its id. */
const ofKey = ['key', 'key-of', 'subscriber'] as const
/** Hashes that all keys share, with a field per key: the field of the victim is damaged, or the whole hash. */
const ofUsage = ['quota', 'used', 'usage-detail'] as const
const ofAll = ['keys', 'subscribers', 'notices', 'instances', 'wanted', 'spending'] as const
const recordKinds = [...ofUsage, ...ofKey, ...ofAll] as const
type RecordKind = (typeof recordKinds)[number]
const isOfKey = (kind: RecordKind): boolean => (ofKey as readonly string[]).includes(kind)
const isOfUsage = (kind: RecordKind): boolean => (ofUsage as readonly string[]).includes(kind)
const fieldKinds: readonly Damage['kind'][] = ['fields', 'all fields', 'gone', 'many']

type QuotaCase = {
  readonly record: RecordKind
  readonly damage: Damage
  /** Whether the key was used before its record is damaged. */
  readonly isUsed: boolean
  /** How many requests of the damaged key, and of each healthy one, are sent at once. */
  readonly requests: number
}
type Victim = { readonly id: string; readonly key: string; readonly subscriberId: string }

const healthyKeys = 3
const recoversWithinMs = 5_000
const writtenWithinMs = 8_000
const target = '/api/v1/locations/district/3026'

const cases = fc.record<QuotaCase>({
  // Counts are chosen most often, since every request reads them.
  record: weighted([2, fc.constant<RecordKind>('quota')], [5, fc.constantFrom(...recordKinds)]),
  damage: damages,
  isUsed: chance(70),
  requests: upTo(1, 8),
})

/** Names of records of a kind. */
const isNameOf = (kind: RecordKind, name: string): boolean =>
  name === prefix + kind || name.startsWith(`${prefix}${kind}:`)

const open = async (system: System): Promise<Session<QuotaCase>> => {
  const redis = system.redis()
  const { administration, close } = await openAdministration(system)
  const healthy = system.keys.slice(1)
  const counts = new Map<Key, number>()
  let made = 0

  const send = (key: string, times: number): Promise<Answer[]> =>
    get(system.gateway().apiUrl, key, Array<string>(times).fill(target))
  const cold = (): Promise<Answer[]> => loadCells(system.gateway(), system.keys[0].key, freshCells(system, 1))

  const recordOf = async (kind: RecordKind, { id, subscriberId }: Victim): Promise<string | undefined> => {
    const names = (await redis.keys(`${prefix}${kind}*`)).filter(name => isNameOf(kind, name))
    if (kind === 'subscriber') return names.find(name => name.includes(subscriberId))
    if (kind === 'key-of') {
      for (const name of names) if ((await redis.get(name).catch(() => '')) === id) return name
      return undefined
    }
    // On a cluster each part of the keys has hashes of its own.
    if (!isOfKey(kind)) return names.find(name => name.includes(usageTag(id))) ?? names[0]
    // A record that does not exist yet is created under its later name.
    const known = healthy[0]?.id ?? ''
    return (
      names.find(name => name.includes(id)) ?? names.find(name => name.includes(known))?.replace(known, id)
    )
  }

  /** Damages a record; in a hash that all keys share the field of the victim, unless its type changes. Returns how to undo it. */
  const damageOf = async (
    kind: RecordKind,
    name: string,
    { id }: Victim,
    how: Damage,
  ): Promise<() => Promise<unknown>> => {
    if (isOfUsage(kind) && fieldKinds.includes(how.kind) && (await redis.type(name)) === 'hash') {
      const before = await redis.hgetBuffer(name, id)
      if (how.kind === 'gone') await redis.hdel(name, id)
      else await redis.hset(name, id, how.values.join(how.kind === 'all fields' ? ' ' : ''))
      return () => (before ? redis.hset(name, id, before) : redis.hdel(name, id))
    }
    const [before, left] = [await redis.dumpBuffer(name), await redis.pttl(name)]
    await damage(redis, name, how)
    return async () => {
      await redis.del(name)
      if (before) await redis.restore(name, Math.max(0, left), before, 'REPLACE')
    }
  }

  /** A healthy key gets each remaining count once, one less with each request. */
  const checkHealthy = async (key: Key, times: number): Promise<void> => {
    const before = counts.get(key)
    // After a failure the count is unknown, so the comparison begins again.
    counts.delete(key)
    const answers = await send(key.key, times)
    for (const answer of answers) {
      checkAnswer(answer)
      demand(answer.status === 200, `a healthy key gets ${answer.status}`, answer.body)
    }
    const remaining = answers
      .map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
      .sort((one, other) => other - one)
    counts.set(key, key.limit - (remaining.at(-1) ?? 0))
    if (before === undefined) return
    const expected = remaining.map((_, i) => key.limit - before - i - 1)
    const isExact = remaining.every((value, i) => value === expected[i])
    demand(
      isExact,
      'a healthy key is not counted exactly',
      `${remaining.join(' ')} in place of ${expected.join(' ')}`,
    )
  }

  const checkForeseen = (answers: readonly Answer[]): void => {
    for (const answer of answers) {
      checkAnswer(answer)
      demand(!answer.body.includes('unexpected'), 'an error that nobody foresaw', answer.body)
    }
  }

  /** @param may what a right answer may be */
  const recovers = async (
    rule: string,
    load: () => Promise<Answer[]>,
    may: readonly number[],
  ): Promise<void> => {
    let last = ''
    const isServed = async (): Promise<boolean> => {
      const [answer] = await load()
      last = `${answer?.status}: ${answer?.body}`
      return may.includes(answer?.status ?? 0)
    }
    demand(await foundWithin(recoversWithinMs, isServed, 50), rule, last)
  }

  return {
    notes: await missingKinds(system),
    run: async ({ record, damage: how, isUsed, requests }) => {
      const { id, key, subscriber } = await administration.createKey(`Victim ${made++}`, 'enterprise')
      const listed = (await administration.listSubscribers()).find(({ name }) => name === subscriber)
      const victim = { id, key, subscriberId: listed?.id ?? '' }
      if (isUsed) await send(victim.key, 1)
      const name = await recordOf(record, victim)
      const undo = name === undefined ? undefined : await damageOf(record, name, victim, how)
      await Promise.all([
        send(victim.key, requests).then(checkForeseen),
        ...healthy.map(each => checkHealthy(each, requests)),
        // The budget is read only for cells that are not cached.
        ...(record === 'spending' ? [cold().then(checkForeseen)] : []),
      ])
      await undo?.()
      // Repairs the record as an operator does, which also evicts the cached copies.
      await administration.setKey(victim.id, { tier: 'enterprise' })
      // A count of all its requests was put in place, which is as good as any other.
      const isSpent = how.values.some(text => /^\d+$/.test(text) && Number(text) >= dailyQuota)
      const may = isOfUsage(record) && isSpent ? [200, 429] : [200]
      await recovers('the key concerned does not recover', () => send(victim.key, 1), may)
      await Promise.all(healthy.map(each => checkHealthy(each, 2)))
      if (record === 'spending') await recovers('cells that are not cached are refused for good', cold, [200])
    },
    close,
  }
}

type Administration = ReturnType<typeof createAdministration>

/** Key administration beside the gateway, on a connection that stays open. */
const openAdministration = async ({ env }: System) => {
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const { promise: opened, resolve, reject } = Promise.withResolvers<Administration>()
  const running = administerWith(loadConfig({ files: [], env }), systemClock, administration => {
    resolve(administration)
    return over
  })
  running.catch(reject)
  const close = async (): Promise<void> => {
    end()
    await running
  }
  return { administration: await opened, close }
}

/** The kinds of records that do not exist, which can't be damaged. Some are written only every few seconds. */
const missingKinds = async (system: System): Promise<string[]> => {
  await loadCells(system.gateway(), system.keys[0].key, freshCells(system, 1))
  let missing: readonly RecordKind[] = recordKinds
  const isWhole = async (): Promise<boolean> => {
    const names = await system.redis().keys(`${prefix}*`)
    missing = recordKinds.filter(kind => !names.some(name => isNameOf(kind, name)))
    return missing.length === 0
  }
  await foundWithin(writtenWithinMs, isWhole, 100)
  return missing.map(kind => `quotas: there is no record whose name begins with ${prefix}${kind}`)
}

const quotasOn = (
  store: 'redis' | 'sentinel' | 'cluster',
  name: Target['name'],
  share: number,
): Target<QuotaCase> => ({
  name,
  share,
  checks:
    'healthy keys are counted exactly and never fail, quota headers are whole numbers from 0 on, the key concerned recovers',
  batches: batchesOf(cases, 30),
  atOnce: 1,
  setting: {
    store,
    moreKeys: healthyKeys,
    env: {
      ABOHAWA_CACHE__CELL_DEGREES: String(cellDegrees),
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '100000000',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '100000000',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '100000000',
    },
  },
  kindOf: ({ record }) => `${record} record`,
  print: ({ record, damage: how, isUsed, requests }) =>
    `${damageText(how)} in place of a ${record} record, ${isUsed ? 'used' : 'not used'} before, ${requests} requests at once`,
  open,
})

export const quotas = quotasOn('redis', 'quotas', 3)
export const quotasOfSentinel = quotasOn('sentinel', 'quotas-sentinel', 1)
export const quotasOfCluster = quotasOn('cluster', 'quotas-cluster', 1)
