// Target: records in Redis of keys, quotas, usage and the budget. One record is replaced by nonsense while its key and
// healthy keys send requests: the healthy ones are counted exactly and never fail, and the damaged one recovers.

import { administerWith } from '../../src/cli/administer.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { createAdministration } from '../../src/keys/administration.ts'
import { usageTag } from '../../src/stores/redis/key-names.ts'
import { foundWithin } from '../../test/support/until.ts'
import { type Finding, finding } from '../finding.ts'
import { brokenRules, headerOf } from '../http/answer-rules.ts'
import { converse, whole } from '../http/conversation.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { Answer } from '../http/response-reader.ts'
import type { Random } from '../random.ts'
import { dailyQuota, type Key, type System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { loadCells } from './cell-weather.ts'
import { cellDegrees, freshCellsOf } from './fresh-cells.ts'
import { type Damage, damage, damageText, makeDamage } from './redis-damage.ts'

type QuotaCase = {
  readonly record: RecordKind
  readonly damage: Damage
  /** Whether the key was used before its record is damaged. */
  readonly isUsed: boolean
  /** How many requests of the damaged key, and of each healthy one, are sent at once. */
  readonly requests: number
}

/** Records by the prefix of their names; those of a key contain its id, the others are shared. */
const ofKey = ['key', 'key-of', 'subscriber'] as const
/** Hashes that all keys share, with a field per key: the field of the victim is damaged, or the whole hash. */
const ofUsage = ['quota', 'used', 'usage-detail'] as const
const ofAll = ['keys', 'subscribers', 'notices', 'instances', 'wanted', 'spending'] as const
const fieldKinds: readonly Damage['kind'][] = ['fields', 'all fields', 'gone', 'many']
type RecordKind = (typeof ofUsage)[number] | (typeof ofKey)[number] | (typeof ofAll)[number]
const recordKinds: readonly RecordKind[] = [...ofUsage, ...ofKey, ...ofAll]

const [prefix, healthyKeys] = ['fuzz:', 3]
const recoversWithinMs = 5_000
const writtenWithinMs = 8_000
const isUsageOf = (kind: RecordKind): boolean => (ofUsage as readonly string[]).includes(kind)
const isWholeLimit = (text: string): boolean => /^\d+$/.test(text) && Number(text) >= dailyQuota
const healthyTarget = '/api/v1/locations/district/3026'

const generate = (random: Random, number: number): QuotaCase => ({
  // Counts are chosen most often, since every request reads them.
  record: recordKinds[number] ?? (random.chance(0.4) ? 'quota' : random.pick(recordKinds)),
  damage: makeDamage(random),
  isUsed: random.chance(0.7),
  requests: random.between(1, 8),
})

const open = async (system: System): Promise<Session<QuotaCase>> => {
  const redis = system.redis()
  const administration = await openAdministration(system)
  const cells = freshCellsOf(system)
  const healthy = system.keys.slice(1)
  const counts = new Map<Key, number>()
  let made = 0

  const send = async (key: string, times: number, target = healthyTarget): Promise<Answer[]> => {
    const bytes = bytesWithKey(requestText({ target }).repeat(times), key)
    return [...(await converse(system.gateway().api, bytes, whole, () => false, times)).answers]
  }

  const recordOf = async (kind: RecordKind, { id, subscriberId }: Victim): Promise<string | undefined> => {
    const names = (await redis.keys(`${prefix}${kind}*`)).filter(
      name => name === prefix + kind || name.startsWith(`${prefix}${kind}:`),
    )
    if (kind === 'subscriber') return names.find(name => name.includes(subscriberId))
    if (kind === 'key-of') {
      for (const name of names) if ((await redis.get(name).catch(() => '')) === id) return name
      return undefined
    }
    // On a cluster each part of the keys has hashes of its own.
    if (!(ofKey as readonly string[]).includes(kind))
      return names.find(name => name.includes(usageTag(id))) ?? names[0]
    // A record that does not exist yet is created under its later name.
    const [known] = healthy
    return (
      names.find(name => name.includes(id)) ??
      names.find(name => known && name.includes(known.id))?.replace(known?.id ?? '', id)
    )
  }

  /** Damages a record; in a hash that all keys share the field of the victim, unless its type changes. Returns how to undo it. */
  const damageOf = async (
    kind: RecordKind,
    name: string,
    { id }: Victim,
    how: Damage,
  ): Promise<() => Promise<void>> => {
    const isField = isUsageOf(kind) && fieldKinds.includes(how.kind)
    if (isField && (await redis.type(name)) === 'hash') {
      const before = await redis.hgetBuffer(name, id)
      if (how.kind === 'gone') await redis.hdel(name, id)
      else await redis.hset(name, id, how.values.join(how.kind === 'all fields' ? ' ' : ''))
      return async () => {
        if (before) await redis.hset(name, id, before)
        else await redis.hdel(name, id)
      }
    }
    const [before, left] = [await redis.dumpBuffer(name), await redis.pttl(name)]
    await damage(redis, name, how)
    return async () => {
      await redis.del(name)
      if (before) await redis.restore(name, Math.max(0, left), before, 'REPLACE')
    }
  }

  /** A healthy key gets each remaining count once, one less with each request. */
  const exact = async (key: Key, times: number): Promise<Finding[]> => {
    const answers = await send(key.key, times)
    const before = counts.get(key)
    const failed = answers.find(({ status }) => status !== 200)
    const remaining = answers
      .map(answer => Number(headerOf(answer, 'x-ratelimit-remaining')))
      .toSorted((one, other) => other - one)
    // After a failure the count is unknown, so the comparison begins again.
    if (failed || answers.length < times) counts.delete(key)
    else counts.set(key, key.limit - (remaining.at(-1) ?? 0))
    const found = answers.flatMap(answer => brokenRules(answer))
    if (answers.length < times)
      return [...found, finding('a healthy key gets no answer', `${answers.length} of ${times}`)]
    if (failed) return [...found, finding(`a healthy key gets ${failed.status}`, failed.body.toString())]
    const expected = remaining.map((_, i) => key.limit - (before ?? 0) - i - 1)
    if (before !== undefined && remaining.some((value, i) => value !== expected[i]))
      return [
        ...found,
        finding(
          'a healthy key is not counted exactly',
          `${remaining.join(' ')} in place of ${expected.join(' ')}`,
        ),
      ]
    return found
  }

  const judgeVictim = (answers: readonly Answer[], times: number): Finding[] => {
    const found = answers.flatMap(answer => brokenRules(answer))
    if (answers.length < times)
      found.push(finding('the key concerned gets no answer', `${answers.length} of ${times}`))
    const unforeseen = answers.find(({ body }) => body.includes('unexpected'))
    if (unforeseen) found.push(finding('an error that nobody foresaw', unforeseen.body.toString()))
    return found
  }

  /** @param mayBeSpent a count of all its requests was put in place, which is as good as any other */
  const recovers = async (victim: Victim, mayBeSpent: boolean): Promise<Finding[]> => {
    // Repairs the record as an operator does, which also evicts the cached copies.
    await administration.act(({ setKey }) => setKey(victim.id, { tier: 'enterprise' }))
    let last = 'no answer'
    const isServed = async (): Promise<boolean> => {
      const [answer] = await send(victim.key, 1)
      last = `${answer?.status}: ${answer?.body.toString()}`
      return answer?.status === 200 || (mayBeSpent && answer?.status === 429)
    }
    return (await foundWithin(recoversWithinMs, isServed, 50))
      ? []
      : [finding('the key concerned does not recover', last)]
  }

  return {
    notes: await missingKinds(system),
    run: async ({ record, damage: how, isUsed, requests }) => {
      const victim = await administration.act(async ({ createKey, listSubscribers }) => {
        const { id, key, subscriber } = await createKey(`Victim ${made++}`, 'enterprise')
        const listed = (await listSubscribers()).find(({ name }) => name === subscriber)
        return { id, key, subscriberId: listed?.id ?? '' }
      })
      const found: Finding[] = []
      if (isUsed) await send(victim.key, 1)
      const name = await recordOf(record, victim)
      const undo = name === undefined ? undefined : await damageOf(record, name, victim, how)
      const all = await Promise.all([
        send(victim.key, requests).then(answers => judgeVictim(answers, requests)),
        ...healthy.map(key => exact(key, requests)),
        // The budget is read only for cells that are not cached.
        ...(record === 'spending'
          ? [
              loadCells(system.gateway(), system.keys[0].key, cells.of(-1, 1)).then(({ answers }) =>
                answers.flatMap(answer => brokenRules(answer)),
              ),
            ]
          : []),
      ])
      found.push(...all.flat())
      await undo?.()
      found.push(...(await recovers(victim, isUsageOf(record) && how.values.some(isWholeLimit))))
      found.push(...(await Promise.all(healthy.map(key => exact(key, 2)))).flat())
      if (record === 'spending') found.push(...(await coldIsServed(system, cells.of(-1, 1)[0])))
      // Damage of this case must not affect the following cases.
      if (found.length > 0) {
        await system.restart()
        counts.clear()
      }
      return found
    },
    close: administration.close,
  }
}

type Victim = { readonly id: string; readonly key: string; readonly subscriberId: string }

const coldIsServed = async (
  system: System,
  point: Parameters<typeof loadCells>[2][number] | undefined,
): Promise<Finding[]> => {
  let last = ''
  const isServed = async (): Promise<boolean> => {
    const { answers } = await loadCells(system.gateway(), system.keys[0].key, point ? [point] : [])
    last = answers[0]?.body.toString() ?? ''
    return answers[0]?.status === 200
  }
  return (await foundWithin(recoversWithinMs, isServed, 200))
    ? []
    : [finding('cells that are not cached are refused for good', last)]
}

type Administration = ReturnType<typeof createAdministration>

/** Key administration beside the gateway, on a connection that stays open. */
const openAdministration = async (system: System) => {
  const { promise: over, resolve: close } = Promise.withResolvers<void>()
  const { promise: opened, resolve: open } = Promise.withResolvers<Administration>()
  const running = administerWith(
    loadConfig({ files: [], env: system.env }),
    systemClock,
    async administration => {
      open(administration)
      await over
    },
  )
  const administration = await Promise.race([
    opened,
    running.then(() => Promise.reject(new Error('no store'))),
  ])
  return {
    act: <Result>(act: (administration: Administration) => Promise<Result>): Promise<Result> =>
      act(administration),
    close: async () => {
      close()
      await running
    },
  }
}

/** The kinds of records that do not exist, which cannot be damaged. */
const missingKinds = async (system: System): Promise<string[]> => {
  await loadCells(system.gateway(), system.keys[0].key, freshCellsOf(system).of(-1, 1))
  // Some records are written only every few seconds.
  let missing: readonly string[] = recordKinds
  const isWhole = async (): Promise<boolean> => {
    const names = await system.redis().keys(`${prefix}*`)
    missing = recordKinds.filter(
      kind => !names.some(name => name === prefix + kind || name.startsWith(`${prefix}${kind}:`)),
    )
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
  batch: 20,
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
  generate,
  shapeOf: ({ record }) => `${record} record`,
  isAlone: () => false,
  smaller: function* (given) {
    if (given.requests > 1) yield { ...given, requests: 1 }
  },
  print: ({ record, damage: how, isUsed, requests }) =>
    `${damageText(how)} in place of a ${record} record, ${isUsed ? 'used' : 'not used'} before, ${requests} requests at once`,
  open,
})

export const quotas: Target<QuotaCase> = quotasOn('redis', 'quotas', 3)
export const quotasOfSentinel: Target<QuotaCase> = quotasOn('sentinel', 'quotas-sentinel', 1)
export const quotasOfCluster: Target<QuotaCase> = quotasOn('cluster', 'quotas-cluster', 1)
