// What every store counts of the units of keys: never more than a limit, and each once.

import type { Store, UsageGrant } from '../../../src/stores/store.ts'
import type { TokenEntry } from '../../../src/stores/token-bucket.ts'
import { until } from '../../support/until.ts'
import { aDetail, anEntry, batchOf, instanceOn, keysOfOnePartition } from '../usage-instance.ts'
import type { ContractTest } from './contract-test.ts'

const grant = (granted: number, used: number, before: number): UsageGrant => ({ granted, used, before })

export const usageContract = (test: ContractTest): void => {
  test('units are granted up to the limit and not beyond, and a refusal counts nothing', async (t, store) => {
    const commit = instanceOn(store, 'one')
    const grants = []
    for (let i = 0; i < 5; i++) grants.push(...(await commit({})))
    t.strictSame(grants, [grant(1, 1, 0), grant(1, 2, 1), grant(1, 3, 2), grant(0, 3, 3), grant(0, 3, 3)])
    t.strictSame(await store.usedOn('key_1', ['2126-11-21']), [3])
  })

  test('a batch grants several units of several keys at once, each cut to what is left', async (t, store) => {
    const commit = instanceOn(store, 'one')
    const [first = '', second = '', third = ''] = keysOfOnePartition(store, 3)
    const several = [
      { keyId: first, units: 2 },
      { keyId: second, units: 5 },
      { keyId: third, limit: 1 },
    ]
    t.strictSame(await commit(...several), [grant(2, 2, 0), grant(3, 3, 0), grant(1, 1, 0)])
    t.strictSame(await commit({ keyId: first, units: 2 }), [grant(1, 3, 2)])
    t.strictSame(await commit({ keyId: first, units: 0 }), [grant(0, 3, 3)])
    t.strictSame(await commit({ keyId: first, limit: 2 }), [grant(0, 3, 3)], 'a lowered limit')
    t.strictSame(await store.commit(batchOf('one', 99, [])), [])
  })

  test('units that are requested whole are granted all or none', async (t, store) => {
    const [one, two] = [instanceOn(store, 'one'), instanceOn(store, 'two')]
    const whole = (unitsEach: number, requests = 1, limit = 10) => ({
      ...{ limit, units: 0, runs: [{ unitsEach, requests }] },
    })
    const [first = '', second = ''] = keysOfOnePartition(store, 2)
    t.strictSame(await one({ ...whole(11), keyId: first }), [grant(0, 0, 0)])
    t.strictSame(
      await one({ ...whole(7), keyId: first }, { keyId: second, limit: 10, units: 11 }),
      [grant(7, 7, 0), grant(10, 10, 0)],
      'beside those of another key that are granted in part',
    )
    t.strictSame(await two({ ...whole(4), keyId: first }), [grant(0, 7, 7)])
    t.strictSame(await two({ ...whole(3), keyId: first }), [grant(3, 10, 7)])
    t.strictSame(await one({ ...whole(2), keyId: first }), [grant(0, 10, 10)])
    t.strictSame(await one({ ...whole(2, 1, 5), keyId: first }), [grant(0, 10, 10)])
    t.strictSame(await store.usedOn(first, ['2126-11-21']), [10])
  })

  test('requests of different costs are granted in their order, each all of its units or none', async (t, store) => {
    const commit = instanceOn(store, 'one')
    const [first = '', second = '', third = ''] = keysOfOnePartition(store, 3)
    const runsOf = (...runs: (readonly [unitsEach: number, requests: number])[]) => ({
      units: 0,
      runs: runs.map(([unitsEach, requests]) => ({ unitsEach, requests })),
    })
    t.strictSame(
      await commit(
        { keyId: first, limit: 40, ...runsOf([1, 3], [10, 2], [30, 5], [1, 2], [7, 9], [1, 4]) },
        { keyId: second, limit: 10, units: 11 },
        { keyId: third, limit: 10, ...runsOf([4, 3], [1, 1]) },
      ),
      // 3, 20, none of 30, 2, two of 7, and one of 1.
      [grant(40, 40, 0), grant(10, 10, 0), grant(9, 9, 0)],
    )
    t.strictSame(await commit({ keyId: first, limit: 20, ...runsOf([2, 1], [1, 1]) }), [grant(0, 40, 40)])
  })

  test('keys and days are counted apart, over the turn of a month too', async (t, store) => {
    const commit = instanceOn(store, 'one')
    const [first, last, next] = ['2126-11-21', '2126-11-30', '2126-12-01'] as const
    for (const entry of [{}, { day: last }, { keyId: 'key_2' }, { day: last }, { day: next }])
      await commit(entry)
    t.strictSame(await store.usedOn('key_1', [next, last, first, '2126-11-20']), [1, 2, 1, 0])
    t.strictSame(await store.usedOn('key_2', ['2126-11-21']), [1])
    t.strictSame(await store.usedOn('key_1', []), [])
  })

  const second = { name: 'second', capacity: 10, perMs: 1e-6, spent: 0 }
  const minute = { name: 'minute', capacity: 6, perMs: 1e-6, spent: 0 }
  /** A batch of so many requests of a key with buckets; returns the requests that got a token, what is left, and the units. */
  const rated = (store: Store, name = 'one') => {
    const commit = instanceOn(store, name)
    return async (requests: number, buckets: readonly TokenEntry[] = [second], keyId = 'key_1') => {
      const runs = requests > 0 ? [{ unitsEach: 1, requests }] : []
      const [grant] = await commit({ keyId, limit: 1_000, units: 0, runs, buckets })
      return [grant?.tokens?.taken, grant?.granted, ...(grant?.tokens?.left ?? []).map(Math.round)]
    }
  }

  test('requests need a token of every bucket, by key, and without one they take no unit', async (t, store) => {
    const take = rated(store)
    t.strictSame(await take(4), [4, 4, 6])
    t.strictSame(await take(4, [second, minute]), [4, 4, 2, 2])
    t.strictSame(await take(4, [second, minute]), [2, 2, 0, 0])
    t.strictSame(await take(1), [0, 0, 0])
    t.strictSame(await take(99, [second], 'key_2'), [10, 10, 0])
    t.strictSame(await store.usedOn('key_1', ['2126-11-21']), [10])
  })

  test('tokens go to requests in their order, also to those that take no unit or find none', async (t, store) => {
    const commit = instanceOn(store, 'one')
    const [first = '', second = '', third = ''] = keysOfOnePartition(store, 3)
    const bucket = { name: 'second', capacity: 6, perMs: 1e-6, spent: 0 }
    const runs = [
      { unitsEach: 2, requests: 2 },
      { unitsEach: 0, requests: 1 },
      { unitsEach: 5, requests: 2 },
      { unitsEach: 1, requests: 3 },
    ]
    const grants = await commit(
      { keyId: first, units: 3, limit: 10 },
      { keyId: second, limit: 8, runs, buckets: [bucket] },
      { keyId: third, limit: 8, runs, buckets: [{ ...bucket, capacity: 4 }] },
    )
    t.match(grants, [
      grant(3, 3, 0),
      // Neither of five units fits behind four; one of one.
      { ...grant(5, 5, 0), tokens: { taken: 6, left: [0] } },
      { ...grant(4, 4, 0), tokens: { taken: 4, left: [0] } },
    ])
  })

  test('what was spent without the store is missing', async (t, store) => {
    const take = rated(store)
    t.strictSame(await take(1, [{ ...second, spent: 7 }]), [1, 1, 2])
    t.strictSame(await take(0, [second]), [0, 0, 2])
    t.strictSame(await take(0, [{ ...second, capacity: 1 }]), [0, 0, 1])
    t.strictSame(await take(1, [{ ...second, spent: 50 }]), [0, 0, 0])
  })

  test('a bucket refills by the clock of the store', async (t, store) => {
    const take = rated(store)
    const startedAt = await store.time()
    t.strictSame(await take(10), [10, 10, 0])
    const quick = { ...second, perMs: 0.1 }
    await until('a token is there', async () => (await take(1, [quick]))[0] === 1)
    t.ok((await store.time()) - startedAt >= 9, 'not before its time')
  })

  test('many who take at once get together what there is', async (t, store) => {
    const names = Array.from({ length: 30 }, (_, i) => `instance${i}`)
    const all = await Promise.all(names.map(name => rated(store, name)(1)))
    t.equal(all.filter(([taken]) => taken === 1).length, 10)
  })

  test('what instances take together is exactly the limit', async (t, store) => {
    const commits = ['one', 'two', 'three', 'four'].map(name => instanceOn(store, name))
    const rounds = await Promise.all(
      commits.map(async commit => {
        const results = []
        for (let i = 0; i < 50; i++) results.push(...(await commit({ limit: 120 })))
        return results
      }),
    )
    const counts = rounds.flat().flatMap(({ granted, used }) => (granted === 1 ? [used] : []))
    t.strictSame(
      counts.sort((a, b) => a - b),
      Array.from({ length: 120 }, (_, i) => i + 1),
    )
  })

  test('what an instance reports as admitted replaces the store’s figure for it, up and down', async (t, store) => {
    const [one, two] = [instanceOn(store, 'one'), instanceOn(store, 'two')]
    await one({ units: 5, limit: 100 })
    await two({ units: 3, limit: 100 })
    for (const [instance, units, admitted, expected, why] of [
      [one, 0, 25, grant(0, 28, 8), '20 units more than the store knew of'],
      [two, 2, 1, grant(2, 28, 28), '2 units of a batch whose outcome was lost go back'],
      [one, 1, 120, grant(0, 123, 28), 'what was admitted is counted beyond the limit too'],
    ] as const)
      t.strictSame(await instance({ units, limit: 100, admitted }), [expected], why)
    t.strictSame(await store.usedOn('key_1', ['2126-11-21']), [123])
  })

  test('what was admitted of a day long over is added to what was counted of it', async (t, store) => {
    const over = { keyId: 'key_1', limit: 100, endsAt: Date.now() - 3 * 86_400_000 }
    const [one, two] = [instanceOn(store, 'one'), instanceOn(store, 'two')]
    await one({ ...over, units: 5 })
    await two({ ...over, units: 3 })
    t.strictSame(await store.usedOn('key_1', [anEntry.day]), [8])
    for (const day of ['2126-11-22', '2126-11-23', '2126-11-24', '2126-11-25']) {
      await one({ ...over, day })
      await two({ ...over, day })
    }
    t.match(await one({ ...over, units: 0, admitted: 9 }), [{ used: 12 }], '4 more than it had reported')
    t.match(await two({ ...over, units: 0, admitted: 10 }), [{ used: 19 }], 'and 7')
    t.strictSame(await store.usedOn('key_1', [anEntry.day]), [19])
  })

  test('a batch that arrives after a later one changes nothing', async (t, store) => {
    const commit = (instance: string, sequence: number, given: object = {}) =>
      store.commit(batchOf(instance, sequence, [{ ...anEntry, ...given }]))
    await commit('one', 2, { units: 2 })
    const overtaken = { name: 'OvertakenError', code: 'store_unavailable', by: 2 }
    for (const sequence of [1, 2]) await t.rejects(commit('one', sequence), overtaken, `batch ${sequence}`)
    t.strictSame(await store.usedOn('key_1', ['2126-11-20', '2126-11-21']), [0, 2])
    t.strictSame(await commit('one', 3, { day: '2126-11-20' }), [grant(1, 1, 0)])
    t.strictSame(await commit('two', 1), [grant(1, 3, 2)])
  })

  test('keys have a partition, and the store a clock', async (t, store) => {
    t.equal(store.partitionOf('key_1'), store.partitionOf('key_1'))
    t.ok(Math.abs((await store.time()) - Date.now()) < 60_000)
  })

  test('a count is raised to what it was elsewhere, and never lowered', async (t, store) => {
    const { keyId, day, keepUntil } = anEntry
    const commit = instanceOn(store, 'one')
    await store.raiseUsed(keyId, day, 2, keepUntil)
    t.strictSame(await commit({}), [grant(1, 3, 2)])
    t.strictSame(await commit({}), [grant(0, 3, 3)])
    await store.raiseUsed(keyId, day, 2, keepUntil)
    await store.raiseUsed(keyId, '2126-11-20', 0, keepUntil)
    await store.raiseUsed(keyId, '2126-11-19', 9, keepUntil)
    t.strictSame(await store.usedOn(keyId, [day, '2126-11-20', '2126-11-19']), [3, 0, 9])
  })

  test('what a count is raised to has the units that an instance reports again', async (t, store) => {
    const { keyId, day, keepUntil } = anEntry
    const [one, two] = [instanceOn(store, 'one'), instanceOn(store, 'two')]
    await store.raiseUsed(keyId, day, 40, keepUntil)
    const reported = { limit: 100, units: 0, admitted: 50, confirmed: 50 }
    t.strictSame(await one(reported), [grant(0, 50, 40)])
    t.strictSame(await two({ limit: 100, units: 5 }), [grant(5, 55, 50)])
    await store.raiseUsed(keyId, day, 70, keepUntil)
    t.strictSame(await one(reported), [grant(0, 70, 70)])
    t.strictSame(await two({ limit: 100, units: 1 }), [grant(1, 71, 70)])
  })

  test('answers are counted by key, day, endpoint and class of status', async (t, store) => {
    const entry = { ...aDetail, count: 2 }
    await store.addDetail([entry, { ...entry, statusClass: '4xx', count: 1 }, { ...entry, keyId: 'key_2' }])
    await store.addDetail([entry, { ...entry, endpoint: 'forecast' }, { ...entry, day: '2126-11-22' }])
    await store.addDetail([])
    const sorted = async (keyId: string, day: string) =>
      (await store.detailOn(keyId, day))
        .map(({ endpoint, statusClass, count }) => `${endpoint} ${statusClass} ${count}`)
        .sort()
    t.strictSame(await sorted('key_1', '2126-11-21'), ['forecast 2xx 2', 'weather 2xx 4', 'weather 4xx 1'])
    t.strictSame(await sorted('key_1', '2126-11-22'), ['weather 2xx 2'])
    t.strictSame(await sorted('key_2', '2126-11-21'), ['weather 2xx 2'])
    t.strictSame(await store.detailOn('key_3', '2126-11-21'), [])
  })
}
