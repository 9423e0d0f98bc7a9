// The contract for damaged records in every Redis deployment: a damaged record costs itself alone, is observed, is repaired
// by rule where that is possible, and only whole numbers leave the store. The test writes the records over a connection of
// its own.

import fc from 'fast-check'
import type { Cluster, Redis } from 'ioredis'
import type { Test } from 'tap'
import {
  type RecordObserver,
  type RefusedRecord,
  type RepairedQuota,
  unobserved,
} from '../../src/stores/records.ts'
import { OvertakenError, type Store, type UsageEntry } from '../../src/stores/store.ts'
import { sampleKey, sampleSubscriber } from './key-records.ts'
import { until } from './until.ts'
import { anEntry, instanceOn, keysOfOnePartition } from './usage-instance.ts'

export type Tampered = {
  readonly store: Store
  readonly raw: Redis | Cluster
  readonly prefix: string
}

/** Texts that are no valid count: without digits, too long, or accepted by Lua or JavaScript only. */
const noCounts = [
  'x',
  'nan',
  'NaN',
  'inf',
  '-inf',
  'Infinity',
  '-5',
  '-0',
  '1e400',
  '1e3',
  '0x10',
  '1.5',
  ' 5',
  '5 ',
  '',
  '5\u0000',
  '9'.repeat(16),
  '9'.repeat(400),
]

/** Those that are none among other parts either. */
const inside = noCounts.filter(text => text !== '5 ')

type Put = (raw: Redis | Cluster, key: string) => Promise<unknown>

/** Replaces a hash or a text with a record of another type. */
const otherTypes: Record<string, Put> = {
  'a list': (raw, key) => raw.rpush(key, 'x', 'y'),
  'a set': (raw, key) => raw.sadd(key, 'x'),
  'a sorted set': (raw, key) => raw.zadd(key, 1, 'x'),
  'a stream': (raw, key) => raw.xadd(key, '*', 'used', '5'),
}
const types: Record<string, Put> = { 'a text': (raw, key) => raw.set(key, 'x'), ...otherTypes }
const hashTypes = {
  ...otherTypes,
  'a hash': (raw: Redis | Cluster, key: string) => raw.hset(key, 'used', '5'),
}

/** @param open a store with a prefix of its own, and a connection beside it; closed by the test */
export const tamperedRecords = (
  t: Test,
  name: string,
  open: (observer: RecordObserver) => Promise<Tampered>,
): void => {
  type Scene = Tampered & { refused: RefusedRecord[]; repaired: RepairedQuota[] }
  const test = (title: string, body: (t: Test, scene: Scene) => Promise<void>) =>
    t.test(`${name}: ${title}`, async t => {
      const refused: RefusedRecord[] = []
      const repaired: RepairedQuota[] = []
      const opened = await open({
        ...unobserved,
        recordRefused: record => refused.push(record),
        quotaRepaired: record => repaired.push(record),
      })
      t.teardown(() => opened.store.close())
      await body(t, { ...opened, refused, repaired })
    })

  const day = anEntry.day
  const mark = `${day.slice(8)}:`
  const quotaKey = ({ store, prefix }: Tampered, keyId: string) =>
    `${prefix}quota:{q${store.partitionOf(keyId)}}:${day}`
  const monthKey = ({ store, prefix }: Tampered, keyId: string) =>
    `${prefix}used:{q${store.partitionOf(keyId)}}:${day.slice(0, 7)}`

  /** Two instances that were granted 30 and 20 units of three keys, and a batch of all three; the middle key is damaged. */
  const counted = async (scene: Scene) => {
    const { store } = scene
    const [first = '', bad = '', last = ''] = keysOfOnePartition(store, 3)
    const commit = { one: instanceOn(store, 'one'), two: instanceOn(store, 'two') }
    const batch = (units: number, more: Partial<UsageEntry> = {}) =>
      [first, bad, last].map(keyId => ({ keyId, units, limit: 100, step: 2, ...more }))
    await commit.one(...batch(30))
    await commit.two(...batch(20))
    return { commit, batch, first, bad, last, live: quotaKey(scene, bad), record: monthKey(scene, bad) }
  }
  const isWhole = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0

  /** Both hashes of a partition, and the key whose fields are damaged. */
  type Place = { readonly live: string; readonly record: string; readonly bad: string }
  type Damage = {
    readonly what: string
    readonly put: (raw: Redis | Cluster, place: Place) => Promise<unknown>
    /** The records that are repaired; empty when the numbers are still consistent. */
    readonly repairs: ('day' | 'month')[]
    /** Whether a whole hash is damaged: every key of it is repaired from the other one. */
    readonly isOfAll?: boolean
    /** The legible count if it is below the granted 50, and the units that the instance reports. */
    readonly legible?: number
    readonly admitted?: number
  }
  const shownText = (text: string) => JSON.stringify(text.slice(0, 20))
  /** The count of a key as two instances wrote it, in place of which one of its parts is this text. */
  const countWith = ({ used = '50', one = '1:30', two = '1:20' }) => `${used} one:${one} two:${two}`
  const damages: Damage[] = [
    ...Object.entries(types).map(
      ([what, put]): Damage => ({
        what: `the counts of the day are ${what}`,
        put: async (raw, { live }) => {
          await raw.del(live)
          await put(raw, live)
        },
        repairs: ['day'],
        isOfAll: true,
      }),
    ),
    ...Object.entries(types).map(
      ([what, put]): Damage => ({
        what: `the sums of the month are ${what}`,
        put: async (raw, { record }) => {
          await raw.del(record)
          await put(raw, record)
        },
        repairs: ['month'],
        isOfAll: true,
      }),
    ),
    {
      what: 'both are of another type: only the reporting instance’s own units are known',
      put: async (raw, { live, record }) => {
        await raw.del(live)
        await raw.del(record)
        await raw.set(live, 'x')
        await raw.set(record, 'x')
      },
      repairs: ['day', 'month'],
      isOfAll: true,
      legible: 0,
      admitted: 30,
    },
    ...noCounts.map(
      (text): Damage => ({
        what: `the count is ${shownText(text)}`,
        put: (raw, { live, bad }) => raw.hset(live, bad, countWith({ used: text })),
        repairs: ['day'],
      }),
    ),
    ...noCounts.map(
      (text): Damage => ({
        what: `the count and the month’s are ${shownText(text)}: the instances’ own units are left`,
        put: async (raw, { live, record, bad }) => {
          await raw.hset(live, bad, countWith({ used: text }))
          await raw.hset(record, bad, mark + text)
        },
        repairs: ['day'],
      }),
    ),
    // A blank after digits is a separator.
    ...inside.map(
      (text): Damage => ({
        what: `the instance’s units are ${shownText(text)}`,
        put: (raw, { live, bad }) => raw.hset(live, bad, countWith({ one: `1:${text}` })),
        repairs: ['day'],
      }),
    ),
    ...noCounts.map(
      (text): Damage => ({
        what: `the instance’s sequence is ${shownText(text)}`,
        put: (raw, { live, bad }) => raw.hset(live, bad, countWith({ one: `${text}:30` })),
        repairs: ['day'],
      }),
    ),
    ...['', 'x', '30', '1::30', '1:30:1', '1,30', '1:30\n', '1: 30'].map(
      (text): Damage => ({
        what: `the instance’s part is ${JSON.stringify(text)}`,
        put: (raw, { live, bad }) => raw.hset(live, bad, countWith({ one: text })),
        repairs: ['day'],
      }),
    ),
    ...['', ' ', 'x', '50,', '\u0000', 'one:1:30 two:1:20', 'x'.repeat(400)].map(
      (text): Damage => ({
        what: `the whole count is ${shownText(text)}: the month’s is left`,
        put: (raw, { live, bad }) => raw.hset(live, bad, text),
        repairs: ['day'],
      }),
    ),
    {
      what: 'the instance’s units are more than the count',
      put: (raw, { live, bad }) => raw.hset(live, bad, countWith({ used: '7' })),
      repairs: ['day'],
    },
    {
      what: 'a sequence that no instance reaches stands beside its units',
      put: (raw, { live, bad }) => raw.hset(live, bad, countWith({ one: '999999999999999:30' })),
      repairs: ['day'],
    },
    {
      what: 'the count is gone and the units of the instances stand',
      put: (raw, { live, bad }) => raw.hset(live, bad, ' one:1:30 two:1:20'),
      repairs: ['day'],
    },
    {
      what: 'the whole count is gone',
      put: (raw, { live, bad }) => raw.hdel(live, bad),
      repairs: [],
    },
    {
      what: 'the whole month of the key is gone',
      put: (raw, { record, bad }) => raw.hdel(record, bad),
      repairs: [],
    },
    {
      what: 'thousands of instances are in the count, and none of them is believed but its own',
      put: (raw, { live, bad }) => {
        const others = Array.from({ length: 2_500 }, (_, i) => ` f${i}:1:9`)
        return raw.hset(live, bad, `x one:1:30${others.join('')}`)
      },
      repairs: ['day'],
    },
    {
      what: 'thousands of instances are beside a count that is legible: they are folded into it',
      put: (raw, { live, bad }) => {
        const others = Array.from({ length: 2_500 }, (_, i) => ` f${i}:1:0`)
        return raw.hset(live, bad, `50 one:1:30 two:1:20${others.join('')}`)
      },
      repairs: [],
    },
    {
      what: 'the count has megabytes',
      put: (raw, { live, bad }) => raw.hset(live, bad, '9'.repeat(4_000_000)),
      repairs: ['day'],
    },
    {
      what: 'the month has megabytes',
      put: (raw, { record, bad }) => raw.hset(record, bad, `${mark}50 `.repeat(400_000)),
      repairs: [],
    },
  ]

  test('a bad quota record costs its own key alone, is observed, and is repaired to what is legible of it', async (t, scene) => {
    const { store, raw, repaired } = scene
    for (const { what, put, repairs, isOfAll = false, legible = 50, admitted = 0 } of damages) {
      await clear(scene)
      repaired.length = 0
      const { commit, batch, first, bad, last, live, record } = await counted(scene)
      await put(raw, { live, record, bad })
      const taken = await commit.one(...batch(1))
      const repairedThen = repaired.map(({ keyId, day, record }) => [keyId, day, record])
      const areWhole = repaired.every(({ used }) => isWhole(used))
      const [, next] = await commit.two(...batch(1))
      const more = [...(await commit.one(...batch(40))), ...(await commit.two(...batch(40)))]
      const ofBad = { granted: 1, used: legible + admitted + 1, before: legible }
      const others = isOfAll ? ofBad : { granted: 1, used: 51, before: 50 }
      t.strictSame(
        {
          taken,
          repairedThen,
          areWhole,
          next,
          granted: [more[1], more[4]].reduce((sum, each) => sum + (each?.granted ?? 0), 0),
          usedOn: await store.usedOn(bad, [day]),
          repaired: repaired.length,
          isMended: /^100 .{0,80}$/.test((await raw.hget(live, bad)) ?? ''),
          isSummed: /^.{0,80}21:100$/.test((await raw.hget(record, bad)) ?? ''),
          expire: [(await raw.pttl(live)) > 0, (await raw.pttl(record)) > 0],
        },
        {
          taken: [others, ofBad, others],
          repairedThen: (isOfAll ? [first, bad, last] : [bad]).flatMap(keyId =>
            repairs.map(record => [keyId, day, record]),
          ),
          areWhole: true,
          // The other instance is counted once.
          next: { granted: 1, used: 52, before: legible + admitted + 1 },
          // Together at most the limit.
          granted: 48,
          usedOn: [100],
          // Once.
          repaired: repairs.length * (isOfAll ? 3 : 1),
          isMended: true,
          isSummed: true,
          expire: [true, true],
        },
        what,
      )
    }
  })

  test('a batch in which every record is bad is counted all the same', async (t, scene) => {
    const { store, raw, repaired } = scene
    const keys = keysOfOnePartition(store, 40)
    const ofFields = damages.filter(({ isOfAll, repairs }) => !isOfAll && repairs.length > 0)
    for (const [i, bad] of keys.entries()) {
      const place = { live: quotaKey(scene, bad), record: monthKey(scene, bad), bad }
      await ofFields[i % ofFields.length]?.put(raw, place)
    }
    const commit = instanceOn(store, 'one')
    const taken = await commit(...keys.map(keyId => ({ keyId, units: 2, limit: 3 })))
    t.equal(taken.length, 40)
    t.ok(taken.flatMap(each => Object.values(each)).every(isWhole), JSON.stringify(taken))
    t.ok(taken.every(each => each.used <= 3 || each.before > 1))
    t.ok(repaired.length >= 30, `${repaired.length} were repaired`)
  })

  test('whatever a quota record holds, others are counted exactly and it stays within its limit', async (_t, scene) => {
    const { store, raw } = scene
    const [first = '', bad = '', last = ''] = keysOfOnePartition(store, 3)
    const [live, record] = [quotaKey(scene, bad), monthKey(scene, bad)]
    const numeric = fc.oneof(fc.nat(120).map(String), fc.constantFrom(...noCounts), fc.double().map(String))
    const instance = fc.constantFrom('one', 'two', '-', 'three', '')
    const part = fc.oneof(
      fc.tuple(instance, numeric, numeric).map(parts => parts.join(':')),
      numeric,
      fc.string(),
    )
    const value = fc.oneof(
      fc.array(part, { maxLength: 5 }).map(parts => parts.join(' ')),
      fc.tuple(numeric, fc.array(part, { maxLength: 4 })).map(([used, parts]) => [used, ...parts].join(' ')),
      fc.string(),
    )
    const damage = fc.record({
      live: fc.option(value),
      drop: fc.boolean(),
      month: fc.option(
        fc.oneof(
          value,
          value.map(text => mark + text),
        ),
      ),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 4 }), async rounds => {
        await clear(scene)
        const commits = [instanceOn(store, 'one'), instanceOn(store, 'two')]
        let others = 0
        for (const [i, { live: text, drop, month }] of rounds.entries()) {
          if (text !== null) await raw.hset(live, bad, text)
          if (drop) await raw.hdel(live, bad)
          if (month !== null) await raw.hset(record, bad, month)
          const batch = [first, bad, last].map(keyId => ({ keyId, units: 7, limit: 60 }))
          const results = await (commits[i % 2] as (typeof commits)[number])(...batch).catch(
            (error: unknown) => {
              // A foreign sequence: the instance continues after it, which the meter's tests check.
              if (error instanceof OvertakenError) return undefined
              throw error
            },
          )
          if (!results) return
          const [one, of, other] = results
          others += 7
          if (one?.used !== others || other?.used !== others)
            throw new Error(`others have ${one?.used} and ${other?.used}, not ${others}`)
          if (!of || !Object.values(of).every(isWhole)) throw new Error(JSON.stringify(of))
          if (of.granted > 7 || (of.granted > 0 && of.used > 60))
            throw new Error(`over the limit: ${JSON.stringify(of)}`)
        }
        if (!(await store.usedOn(bad, [day])).every(isWhole)) throw new Error('what was used is no count')
      }),
      { seed: 20_261_121, numRuns: 150 },
    )
  })

  test('a bad count of a day that is long over leaves nothing behind', async (t, scene) => {
    const { store, raw, repaired } = scene
    const over = { endsAt: Date.now() - 86_400_000 }
    const { batch, live, record, bad } = await counted(scene)
    await raw.unlink(live)
    await raw.hset(live, bad, 'x')
    const entries = batch(0).map(each => ({ ...anEntry, ...each, ...over, admitted: 31, confirmed: 31 }))
    await store.commit({ instance: 'one', sequence: 9, entries })
    t.equal(repaired.length, 1)
    t.equal(await raw.exists(live), 0)
    t.equal(await raw.hget(record, bad), '21:50')
  })

  test('a batch behind a foreign sequence is refused with that sequence, counts nothing, and the next one is counted', async (t, scene) => {
    const { store, raw } = scene
    const { batch, bad, live } = await counted(scene)
    await raw.hset(live, bad, countWith({ one: '123456:30' }))
    const take = (sequence: number) =>
      store.commit({
        instance: 'one',
        sequence,
        entries: batch(1).map(each => ({ ...anEntry, ...each, admitted: 30, confirmed: 30 })),
      })
    await t.rejects(take(7), { name: 'OvertakenError', by: 123_456 })
    t.strictSame(
      (await take(123_457)).map(({ granted, used, before }) => [granted, used, before]),
      [
        [1, 51, 50],
        [1, 51, 50],
        [1, 51, 50],
      ],
    )
  })

  test('a count that comes from another store is raised over whatever was there', async (t, scene) => {
    const { store, raw } = scene
    const { keyId, keepUntil } = anEntry
    const place = { live: quotaKey(scene, keyId), record: monthKey(scene, keyId), bad: keyId }
    for (const { what, put } of damages) {
      await raw.del(place.live)
      await raw.del(place.record)
      await put(raw, place)
      await store.raiseUsed(keyId, day, 60, keepUntil)
      const used = await store.usedOn(keyId, [day])
      const [taken] = await instanceOn(store, 'new')({ keyId, limit: 100 })
      t.strictSame([used, taken?.granted, taken?.used], [[60], 1, 61], what)
    }
  })

  test('what was used is a whole number, whatever is in the record', async (t, scene) => {
    const { store, raw, refused } = scene
    const { bad, live, record } = await counted(scene)
    for (const text of inside) {
      await raw.hset(record, bad, `20:3 ${mark}${text}`)
      t.strictSame(await store.usedOn(bad, [day, '2126-11-20']), [50, 3], shownText(text))
    }
    t.equal(refused.length, inside.length)
    t.match(refused[0], {
      record: 'usage',
      fault: new RegExp(`its count of ${bad} on 2126-11-21 is no whole number`),
    })
    await raw.hset(record, bad, 'x'.repeat(1_000_000))
    t.strictSame(await store.usedOn(bad, [day]), [50])
    await raw.del(record)
    await raw.set(record, 'x')
    t.strictSame(await store.usedOn(bad, [day]), [50])
    await raw.hset(live, bad, countWith({ used: 'x' }))
    t.strictSame(await store.usedOn(bad, [day]), [50], 'from what the instances admitted')
    await raw.del(live)
    await raw.set(live, 'x')
    t.strictSame(await store.usedOn(bad, [day]), [0])
  })

  const keepUntil = Date.now() + 3_600_000
  const spend = {
    provider: 'acc1',
    windows: [
      { name: 'minute:7', limit: 10_000, keepUntil, known: 2_000 },
      { name: 'day:1', limit: 40_000, keepUntil, known: 5_000 },
    ],
    wanted: 3_000,
    unit: 3_000,
    now: Date.now(),
  }
  const unknown = spend.windows.map(window => ({ ...window, known: 0 }))
  const spendingKey = (prefix: string, part: string) => `${prefix}spending:{acc1}:${part}`

  test('an illegible count of the budget restarts at the reserving gateway’s own count', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const key = spendingKey(prefix, 'day:1')
    const puts: [string, Put][] = [
      ...Object.entries(hashTypes),
      ...noCounts
        .filter(text => text !== '')
        .map((text): [string, Put] => [JSON.stringify(text.slice(0, 20)), (raw, key) => raw.set(key, text)]),
    ]
    for (const [what, put] of puts) {
      await clear(scene)
      await store.reserve({ ...spend, windows: unknown, wanted: 6_000 })
      await raw.del(key)
      await put(raw, key)
      refused.length = 0
      t.strictSame((await store.spending('acc1', ['minute:7', 'day:1'])).used, [6_000, null], what)
      await store.settle({ provider: 'acc1', changes: [{ name: 'day:1', by: -1_000, keepUntil }] })
      t.strictSame(
        await store.reserve(spend),
        { granted: 3_000, closedUntil: null, reopenedAt: 0, used: [9_000, 8_000], claims: [] },
        what,
      )
      t.match(refused, [{ record: 'spending' }, { record: 'spending', name: key }], what)
      t.ok((await raw.pttl(key)) > 0, 'and it expires')
      await raw.del(key)
      await put(raw, key)
      await store.settle({
        provider: 'acc1',
        changes: [{ name: 'day:1', by: 500, atLeast: 7_000, keepUntil }],
      })
      t.strictSame((await store.spending('acc1', ['day:1'])).used, [7_500], what)
    }
  })

  test('a closure that nobody can have meant is lifted, and one of a day and an hour stands', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const key = spendingKey(prefix, 'closed')
    const longest = 25 * 3_600_000
    const texts = ['x', '-1', '253402300799000', String(spend.now + longest + 1), '1e15', '9'.repeat(400)]
    const puts: [string, Put][] = [
      ...Object.entries(hashTypes),
      ...texts.map((text): [string, Put] => [text.slice(0, 20), (raw, key) => raw.set(key, text)]),
    ]
    for (const [what, put] of puts) {
      await clear(scene)
      await put(raw, key)
      refused.length = 0
      t.match(await store.reserve(spend), { granted: 3_000, closedUntil: null }, what)
      t.match(refused, [{ record: 'spending', name: key }], what)
      t.equal(await raw.exists(key), 0)
    }
    for (const [what, put] of puts.filter(([what]) => !what.startsWith(String(spend.now).slice(0, 4)))) {
      await raw.del(key)
      await put(raw, key)
      await store.closeUntil('acc1', spend.now + 9_000, { now: spend.now, reopenedAt: null, reason: 'x' })
      t.match(await store.reserve(spend), { granted: 0, closedUntil: spend.now + 9_000 }, what)
    }
    await raw.set(key, String(spend.now + longest))
    t.match(await store.reserve(spend), { granted: 0, closedUntil: spend.now + longest })
  })

  test('a reopening that nobody can have meant keeps no closure away', async (t, scene) => {
    const { store, raw, prefix } = scene
    const key = spendingKey(prefix, 'reopened')
    const texts = ['x', '-1', '253402300799000', String(spend.now + 26 * 3_600_000), '9'.repeat(400)]
    const puts: [string, Put][] = [
      ...Object.entries(hashTypes),
      ...texts.map((text): [string, Put] => [text.slice(0, 20), (raw, key) => raw.set(key, text)]),
    ]
    const closing = { now: spend.now, reopenedAt: 0, reason: 'x' }
    for (const [what, put] of puts) {
      await clear(scene)
      await put(raw, key)
      t.equal(await store.closeUntil('acc1', spend.now + 9_000, closing), 0, what)
      t.match(await store.reserve(spend), { granted: 0, closedUntil: spend.now + 9_000, reopenedAt: 0 }, what)
      t.match(await store.reopen('acc1', spend.now), {
        closedUntil: spend.now + 9_000,
        reopenedAt: spend.now,
      })
      t.equal(await raw.get(key), String(spend.now), what)
      await put(raw, spendingKey(prefix, 'closed-because'))
      t.equal((await store.closure('acc1')).reopenedAt, spend.now, what)
    }
  })

  const leaseKey = (prefix: string) => `${prefix}flight:{cell}`
  const leases: [string, Put][] = [
    ...Object.entries(types),
    ['without an end', (raw, key) => raw.set(key, 'x')],
    ['held for an hour', (raw, key) => raw.set(key, 'x', 'PX', 3_600_000)],
    ['larger than any', (raw, key) => raw.set(key, 'x'.repeat(5_000), 'PX', 30_000)],
  ]

  test('an invalid lease counts as none: its key is leased, loaded and written as ever', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    for (const [what, put] of leases)
      await t.test(what, async t => {
        await raw.del(leaseKey(prefix))
        refused.length = 0
        await put(raw, leaseKey(prefix))
        t.equal(await store.acquireLease('cell', 'one', 60_000), 'acquired')
        t.match(refused, [{ record: 'lease', name: leaseKey(prefix) }])
        t.equal(await store.acquireLease('cell', 'other', 60_000), 'held')
        t.equal(await store.renewLease('cell', 'one', 60_000), true)
        t.equal(await store.writeBytes('cell', Buffer.from('x'), Date.now() + 60_000, 'one'), true)
        await store.releaseLease('cell', 'one')
        t.equal(await store.acquireLease('cell', 'other', 60_000), 'acquired')
        t.equal(refused.length, 1, 'once')
        // Damaged while the lease is held: its holder writes nothing, and fails at nothing.
        await raw.del(leaseKey(prefix))
        await put(raw, leaseKey(prefix))
        t.equal(await store.renewLease('cell', 'other', 60_000), false)
        t.equal(await store.writeBytes('cell', Buffer.from('y'), Date.now() + 60_000, 'other'), false)
        await store.releaseLease('cell', 'other')
      })
  })

  test('bytes of another type or size are reported, and writing replaces them', async (t, scene) => {
    const { store, raw, prefix } = scene
    const key = `${prefix}bytes:{cell}`
    for (const [what, put] of Object.entries(hashTypes)) {
      await raw.del(key)
      await put(raw, key)
      t.equal(await store.readBytes('cell', 100), 'wrong_type', what)
      await store.acquireLease('cell', what, 60_000)
      t.equal(await store.writeBytes('cell', Buffer.from('x'), Date.now() + 60_000, what), true)
      await store.releaseLease('cell', what)
      t.strictSame(await store.readBytes('cell', 100), Buffer.from('x'))
    }
    await raw.set(key, 'x'.repeat(101))
    t.equal(await store.readBytes('cell', 100), 'too_large')
    t.strictSame(await store.readBytes('cell', 101), Buffer.from('x'.repeat(101)))
    await raw.set(key, '')
    t.equal(await store.readBytes('cell', 100), undefined)
  })

  const heartbeat = {
    instance: 'one',
    aliveForMs: 20_000,
    settings: 'a',
    topic: 'q',
    wantedForMs: 60_000,
    report: '{}',
  }

  test('reports of instances of another type or size are unknown, and a long name is removed', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const now = Date.now()
    const report = JSON.stringify({ phase: 'ready' })
    await store.heartbeat({ ...heartbeat, requested: [], now, report })
    const read = async () => (await store.aliveInstances(20_000)).map(({ id, report }) => ({ id, report }))
    t.strictSame(await read(), [{ id: 'one', report }])
    t.strictSame(await store.aliveInstances(-1), [])
    const key = `${prefix}instance:one`
    for (const [what, put] of Object.entries(hashTypes)) {
      await raw.del(key)
      await put(raw, key)
      t.strictSame(await read(), [{ id: 'one', report: undefined }], what)
    }
    for (const [text, read_] of [
      ['x'.repeat(2_048), 'x'.repeat(2_048)],
      ['x'.repeat(2_049), undefined],
      ['x'.repeat(5_000_000), undefined],
      ['', undefined],
    ] as const) {
      await raw.set(key, text)
      t.strictSame(await read(), [{ id: 'one', report: read_ }], `${text.length} bytes`)
    }
    await raw.zadd(`${prefix}instances`, now, 'x'.repeat(1_000_000), now, 'forged')
    t.strictSame((await read()).map(({ id }) => id).sort(), ['forged', 'one'])
    t.match(refused, [{ record: 'instances', fault: /^1 of its members are longer than 64/ }])
    await store.heartbeat({ ...heartbeat, requested: [], now, report })
    t.match(
      (await read()).find(({ id }) => id === 'one'),
      { report },
      'the next heartbeat writes it again',
    )
  })

  test('a set of heartbeats with thousands of names is reset, and those in the future are removed', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const key = `${prefix}instances`
    const [seconds] = await raw.time()
    const now = Number(seconds) * 1_000
    const aliveForMs = 500
    const sendHeartbeat = (instance: string) =>
      store.heartbeat({ ...heartbeat, aliveForMs, instance, requested: [], now })
    await sendHeartbeat('two')
    t.match(await sendHeartbeat('one'), { instances: 2 })
    await raw.zadd(key, ...Array.from({ length: 5_000 }, (_, i) => [now + 5_000, `forged-${i}`]).flat())
    t.match(await sendHeartbeat('one'), { instances: 2 }, 'as many as were known before')
    t.match(refused, [{ record: 'instances', name: key, fault: /^it has 5002 members/ }])
    t.match(await sendHeartbeat('one'), { instances: 2 }, 'until all can have said so again')
    await until('those count who said so', async () => (await sendHeartbeat('one')).instances === 1)
    await sendHeartbeat('two')
    t.match(await sendHeartbeat('three'), { instances: 3 })
    refused.length = 0
    await raw.zadd(key, now + 10_000_000, 'later', '+inf', 'ever')
    await sendHeartbeat('one')
    t.match(refused, [{ record: 'instances', fault: /^2 of its members are in the future/ }])
    for (const [what, put] of Object.entries({ ...types, ...hashTypes })) {
      if (what === 'a sorted set') continue
      await raw.del(key)
      await put(raw, key)
      const { instances } = await sendHeartbeat('one')
      t.equal(instances, 1, what)
    }
  })

  test('names in demand are bounded in number and length, and none stays for ever', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const key = `${prefix}wanted:q`
    const now = Date.now()
    const sendHeartbeat = (requested: string[]) => store.heartbeat({ ...heartbeat, requested, now })
    t.match(await sendHeartbeat(['a', 'b']), { wanted: 2 })
    // The clock of another gateway may be hours ahead, and no day.
    const times = { ahead: now + 6 * 3_600_000, damaged: now + 25 * 3_600_000 }
    await raw.zadd(
      key,
      now,
      'x'.repeat(1_000_000),
      now,
      'y'.repeat(65),
      times.damaged,
      'later',
      times.ahead,
      'b',
    )
    t.strictSame((await store.wanted('q', now - 1)).sort(), ['a', 'b', 'later'])
    t.match(refused, [{ record: 'wanted', fault: /^2 of its members are longer than 64/ }])
    t.match(await sendHeartbeat([]), { wanted: 2 })
    t.strictSame((await store.wanted('q', now - 1)).sort(), ['a', 'b'], 'what was too long is gone')
    // In several scripts, so that no node of a cluster seems to hang, with a thousand members to a command, which costs a third.
    for (let from = 0; from < 501_000; from += 10_000)
      await raw.eval(
        `for thousand = 0, 9 do
           local members = {}
           for i = 1, 1000 do
             members[2 * i - 1] = ARGV[1]
             members[2 * i] = 'n' .. (ARGV[2] + 1000 * thousand + i)
           end
           redis.call('ZADD', KEYS[1], unpack(members))
         end`,
        1,
        key,
        String(now - 1),
        String(from),
      )
    t.match(await sendHeartbeat([]), { wanted: 500_000 })
    t.equal((await store.wanted('q', now - 1)).length, 50_000)
    for (const [what, put] of Object.entries({ ...types, ...hashTypes })) {
      if (what === 'a sorted set') continue
      await raw.del(key)
      await put(raw, key)
      t.strictSame(await store.wanted('q', 0), [], what)
      await put(raw, key).catch(() => {})
      t.match(await sendHeartbeat(['a']), { wanted: 1 }, what)
    }
  })

  test('change records of any size and number are bounded, and later ones are read', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const key = `${prefix}notices:keys`
    const later = Date.now() + 60_000
    const known = await store.appendChangeRecord('keys', 'one', later)
    await raw.zadd(key, known + 1, `${known + 1} ${'x'.repeat(1_000_000)}`, known + 2.5, 'half')
    await raw.zadd(key, '+inf', 'never ends', 9e15, '9000000000000000 far')
    const next = await store.appendChangeRecord('keys', 'two', later)
    t.ok(next > known && next < known + 600_000, 'its number is the store’s time')
    t.match(refused, [{ record: 'change_records', name: key, fault: /^2 of its members/ }])
    t.strictSame(await store.changeRecordsAfter('keys', known), {
      records: [{ number: next, text: 'two' }],
      complete: true,
    })
    t.match(refused[1], { record: 'change_records', fault: /^2 of its members/ })
    t.equal(refused.length, 2)
    await raw.eval(
      `for i = 1, 20000 do redis.call('ZADD', KEYS[1], ARGV[1] + i, (ARGV[1] + i) .. ' n') end`,
      1,
      key,
      String(next),
    )
    const many = await store.changeRecordsAfter('keys', known)
    t.strictSame([many.records.length, many.complete], [1_000, false])
    await t.rejects(store.appendChangeRecord('keys', 'x'.repeat(5_000), later), { name: 'StoreError' })
    for (const [what, put] of Object.entries({ ...types, ...hashTypes })) {
      if (what === 'a sorted set') continue
      await raw.del(key)
      await put(raw, key)
      t.strictSame(await store.changeRecordsAfter('keys', known), { records: [], complete: false }, what)
      await raw.del(key)
      await put(raw, key)
      const number = await store.appendChangeRecord('keys', 'three', later)
      t.strictSame((await store.changeRecordsAfter('keys', 0)).records, [{ number, text: 'three' }], what)
    }
  })

  test('a key’s record that can’t be read is nobody’s to use, and costs no other key', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const key = `${prefix}key:key_bad`
    await store.ensureSubscriber(sampleSubscriber)
    await store.addKey(sampleKey('key_good'))
    const fatal: [string, RegExp][] = [
      ...['abc', '-5', '0', '1.5', 'nan', '1e3', '9'.repeat(400)].map((text): [string, RegExp] => [
        `limit=${text}`,
        /its limit is ".+"; allowed: nothing, or a whole/,
      ]),
      ...['x', '-1', '8640000000000001'].map((text): [string, RegExp] => [
        `revokedAt=${text}`,
        /its revokedAt is ".+"; allowed: nothing, or an/,
      ]),
      ['tier=', /its tier is ""; allowed: 1 to 400 characters/],
      [`tier=${'x'.repeat(401)}`, /its tier is "x{60}…"; allowed/],
      ['hash=', /its hash is ""/],
      ['subscriberId=', /its subscriberId is ""/],
    ]
    for (const [change, message] of fatal)
      await t.test(change.slice(0, 30), async t => {
        await raw.del(key)
        await store.addKey(sampleKey('key_bad'))
        const [field = '', value = ''] = change.split('=')
        await raw.hset(key, field, value)
        refused.length = 0
        const damaged = { name: 'DamagedRecordError', code: 'record_damaged', message }
        await t.rejects(store.findKey('key_bad'), damaged)
        if (field !== 'hash') await t.rejects(store.findByHash('hash-of-key_bad'), damaged)
        t.match(refused[0], { record: 'key', name: 'key_bad' })
        t.match(await store.findByHash('hash-of-key_good'), { key: { id: 'key_good' } })
        t.strictSame(
          (await store.listKeys()).map(({ id }) => id),
          ['key_good'],
        )
      })
    for (const [what, put] of Object.entries(types)) {
      await raw.del(key)
      await put(raw, key)
      await t.rejects(
        store.findKey('key_bad'),
        { message: /key_bad is damaged: it is of another type/ },
        what,
      )
      t.equal(await raw.exists(key), 1, 'it is left as it is')
    }
    await raw.del(key)
    await raw.hset(key, Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`f${i}`, 'x'])))
    await t.rejects(store.findKey('key_bad'), { message: /it has 10001 fields/ })
    await raw.del(key)
    await store.addKey(sampleKey('key_bad'))
    await raw.hset(key, 'tier', 'x'.repeat(2_000_000))
    await t.rejects(store.findKey('key_bad'), { message: /it has 2\d+ characters/ })
    await t.rejects(store.findByHash('hash-of-key_bad'), { message: /it has 2\d+ characters/ })
    t.equal(await store.changeKey('key_bad', { tier: 'starter' }), true)
    t.match(await store.findKey('key_bad'), { tier: 'starter' }, 'a change repairs what it changes')
  })

  test('damaged dates of a key are returned as 1970, and a former hash without an end has ended', async (t, {
    store,
    raw,
    prefix,
    refused,
  }) => {
    await store.ensureSubscriber(sampleSubscriber)
    await store.addKey(sampleKey('key_1'))
    await raw.hset(`${prefix}key:key_1`, 'createdAt', 'x', 'former:a', 'x', 'former:b', '-1', 'former:', '')
    t.strictSame(await store.findKey('key_1'), { ...sampleKey('key_1'), createdAt: 0 })
    t.equal(refused.length, 3)
    await raw.set(`${prefix}key-of:a`, 'key_1')
    t.equal(await store.findByHash('a'), undefined)
    t.equal(await store.replaceHash('key_1', 'next', 5_000), true)
    t.match(await store.findKey('key_1'), { hash: 'next' })
    await raw.hset(`${prefix}subscriber:sub_a`, 'createdAt', '99999999999999999')
    t.strictSame(await store.findSubscriber('sub_a'), { ...sampleSubscriber, createdAt: 0 })
    await raw.hset(`${prefix}subscriber:sub_a`, 'revokedAt', 'soon')
    await t.rejects(store.findByHash('next'), {
      message: /the record of subscriber sub_a is damaged: its revokedAt/,
    })
    t.strictSame(await store.listSubscribers(), [])
  })

  test('a pointer that is no id is reported, and one to a missing record is absent', async (t, {
    store,
    raw,
    prefix,
  }) => {
    const pointer = `${prefix}key-of:hash-1`
    for (const [what, put] of Object.entries(hashTypes)) {
      await raw.del(pointer)
      await put(raw, pointer)
      await t.rejects(
        store.findByHash('hash-1'),
        { name: 'DamagedRecordError', message: /it is no id/ },
        what,
      )
    }
    await raw.set(pointer, 'x'.repeat(1_000_000))
    await t.rejects(store.findByHash('hash-1'), { name: 'DamagedRecordError' })
    await raw.set(pointer, 'nobody')
    t.equal(await store.findByHash('hash-1'), undefined)
  })

  test('responses are still counted beside an invalid count, and only whole numbers are returned', async (t, scene) => {
    const { store, raw, prefix, refused } = scene
    const keyOf = (keyId: string) => `${prefix}usage-detail:{q${store.partitionOf(keyId)}}:${day}`
    const key = keyOf('key_1')
    const entry = {
      keyId: 'key_1',
      day,
      endpoint: 'weather',
      statusClass: '2xx',
      count: 2,
      keepUntil: Date.now() + 86_400_000,
    }
    const other = { ...entry, keyId: 'key_2' }
    let counted = 0
    for (const text of [...noCounts, '9223372036854775807', '-9223372036854775808']) {
      await raw.hset(key, 'key_1', `${text} 2xx weather`)
      await store.addDetail([entry, other])
      counted += 2
      t.strictSame(await store.detailOn('key_1', day), [
        { endpoint: 'weather', statusClass: '2xx', count: 2 },
      ])
      t.match(await store.detailOn('key_2', day), [{ count: counted }], 'the other key is counted once')
    }
    for (const [what, put] of Object.entries(types)) {
      await raw.del(key)
      await put(raw, key)
      refused.length = 0
      t.strictSame(await store.detailOn('key_1', day), [], what)
      await store.addDetail([entry])
      t.match(await store.detailOn('key_1', day), [{ count: 2 }], what)
      t.match(refused, [{ record: 'usage_detail' }, { record: 'usage_detail', name: key }], what)
      t.ok((await raw.pttl(key)) > 0, 'and it expires')
    }
    await raw.hset(key, 'key_1', '2 2xx weather,1 2xx <b>,x 9xx weather,1 weather,,1')
    t.strictSame(await store.detailOn('key_1', day), [{ endpoint: 'weather', statusClass: '2xx', count: 2 }])
    await raw.hset(key, 'key_1', '2 2xx weather,'.repeat(100_000))
    t.strictSame(await store.detailOn('key_1', day), [])
    await store.addDetail([entry])
    t.match(await store.detailOn('key_1', day), [{ count: 2 }])
  })

  /** Removes everything under the prefix of this test. */
  const clear = async ({ raw, prefix }: Tampered): Promise<void> => {
    const nodes = 'nodes' in raw ? raw.nodes('master') : [raw]
    const keys = await Promise.all(nodes.map(node => node.keys(`${prefix}*`)))
    for (const key of keys.flat()) await raw.del(key)
  }
}
