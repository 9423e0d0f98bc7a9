// The contract of every store. Each store's test file calls it once and adds its own tests.

import type { Test } from 'tap'
import { roomOf } from '../../src/stores/fair-share.ts'
import { longestId } from '../../src/stores/records.ts'
import type { Spending, Spent } from '../../src/stores/spending-store.ts'
import {
  type ChangeTopic,
  type KeyChange,
  type KeyRecord,
  type KeyWithSubscriber,
  type Store,
  StoreError,
  type Subscriber,
  type UsageGrant,
} from '../../src/stores/store.ts'
import type { TokenEntry } from '../../src/stores/token-bucket.ts'
import { createRandom } from '../../tools/load/traffic/generate/random.ts'
import { sampleKey } from '../support/key-records.ts'
import { until } from '../support/until.ts'
import { closeIn, closureIn, spendingStep, spendingWindow, usedIn, usedOf } from './spending.ts'
import { aDetail, anEntry, batchOf, heartbeatOf, instanceOn, keysOfOnePartition } from './usage-instance.ts'

const subscriber = (id: string, name: string, createdAt = 1_000): Subscriber => ({
  ...{ id, name, createdAt, revokedAt: null },
})
const padma = subscriber('sub_a', 'Padma')
const keyRecord = (id: string, given: Partial<KeyRecord> = {}): KeyRecord => ({
  ...sampleKey(id),
  previousHashes: [],
  ...given,
})
const grant = (granted: number, used: number, before: number): UsageGrant => ({ granted, used, before })
const idsOf = (records: readonly { id: string }[]): string[] => records.map(({ id }) => id)

/** @param open a new, empty store; called once per test, closed by the contract */
export const storeContract = (t: Test, name: string, open: (t: Test) => Promise<Store>): void => {
  const test = (title: string, body: (t: Test, store: Store) => Promise<void>) =>
    t.test(`${name}: ${title}`, async t => {
      const store = await open(t)
      t.teardown(() => store.close())
      await body(t, store)
    })

  /** With a subscriber, and keys of it. */
  const keysTest = (title: string, keys: KeyRecord[], body: (t: Test, store: Store) => Promise<void>) =>
    test(title, async (t, store) => {
      await store.ensureSubscriber(padma)
      for (const key of keys) t.equal(await store.addKey(key), undefined)
      await body(t, store)
    })
  const key = keyRecord('key_1')
  const restrictions = {
    origins: ['https://nodi.example', 'https://*.nodi.example'],
    addresses: ['192.0.2.0/24', '2001:db8::/32'],
    endpoints: null,
  }
  const rates = { perSecond: 5, burst: 20, perMinute: null }

  test('lists are in the order of creation, and keys are listed in parts too', async (t, store) => {
    await store.ensureSubscriber(subscriber('sub_b', 'Meghna', 2_000))
    await store.ensureSubscriber(padma)
    for (const number of [2, 1, 4, 3, 5])
      await store.addKey(keyRecord(`key_${number}`, { createdAt: number, subscriberId: 'sub_b' }))
    t.strictSame(idsOf(await store.listSubscribers()), ['sub_a', 'sub_b'])
    const ids = ['key_1', 'key_2', 'key_3', 'key_4', 'key_5']
    t.strictSame(idsOf(await store.listKeys()), ids)
    t.strictSame(idsOf(await store.listKeys(3)), ids.slice(3))
    for (const from of [0, 2, 4, 5])
      t.strictSame(idsOf(await store.listKeys(from, 2)), ids.slice(from, from + 2), `two from ${from}`)
    t.equal(await store.countKeys(), 5)
  })

  test('keys beside their subscribers, and subscribers, are read two hundred in a turn', async (t, store) => {
    const holders = Array.from({ length: 250 }, (_, i) => subscriber(`sub_${i}`, `Name ${i}`, 9_000 - i))
    await Promise.all(holders.map(each => store.ensureSubscriber(each)))
    const held = Array.from({ length: 450 }, (_, i) => ({
      ...{ id: `key_${i}`, subscriberId: `sub_${i % 250}`, subscriber: `Name ${i % 250}` },
    }))
    for (const [createdAt, { id, subscriberId }] of held.entries())
      await store.addKey(keyRecord(id, { createdAt, subscriberId }))
    const parts: (readonly KeyWithSubscriber[])[] = []
    for (let from: number | null = 0; from !== null; ) {
      const { keys, next } = await store.keysWithSubscribers(from)
      parts.push(keys)
      from = next
    }
    t.strictSame(parts.flat(), held)
    t.strictSame(
      parts.map(part => part.length),
      [200, 200, 50],
    )
    let isFree = false
    setImmediate(() => {
      isFree = true
    })
    t.strictSame(idsOf(await store.listSubscribers()), idsOf(holders.toReversed()))
    t.ok(isFree, 'other work ran in between')
  })

  keysTest(
    'parts of a key are changed each for itself, and the next look-up says so',
    [key],
    async (t, store) => {
      const changes: KeyChange[] = [
        ...[{ revokedAt: 5_000 }, { tier: 'starter' }, { limit: 77 }, { revokedAt: null }],
        ...[{ limit: null, tier: 'business' }, { expiresAt: 7_000 }, { expiresAt: null }, {}],
        ...[{ restrictions }, { tier: 'free' }, { rates }, { restrictions: null }, { rates: null }],
      ]
      let expected: KeyRecord = key
      for (const change of changes) {
        t.equal(await store.changeKey('key_1', change), true)
        expected = { ...expected, ...change }
        t.strictSame((await store.findByHash(key.hash))?.key, expected, JSON.stringify(change))
      }
      t.strictSame(await store.findKey('key_1'), expected)
      t.equal(await store.changeKey('key_9', { revokedAt: 5_000 }), false)
      t.equal(await store.findKey('key_9'), undefined, 'changing an unknown key makes none')
    },
  )

  const previousHashes = [
    { hash: 'older', validUntil: 1_000 },
    { hash: 'old', validUntil: 2_000 },
  ]
  const whole = keyRecord('key_1', {
    ...{ limit: 77, previousHashes, expiresAt: 9_000, externalId: 'নদী/1' },
    ...{ restrictions, rates },
  })

  keysTest('a key is kept with all that it has, and found by it', [whole], async (t, store) => {
    t.strictSame(await store.findKey('key_1'), whole)
    t.strictSame(await store.listKeys(), [whole])
    t.strictSame(await store.findByHash(whole.hash), { key: whole, subscriber: padma, validUntil: null })
    t.match(await store.findByHash('old'), { key: whole, validUntil: 2_000 })
    for (const nobody of [await store.findByHash('another'), await store.findKey('another')])
      t.equal(nobody, undefined)
    t.strictSame(await store.findByExternalId('নদী/1'), whole)
    for (const other of ['নদী/2', '']) t.equal(await store.findByExternalId(other), undefined)
  })

  keysTest('an external id is of one key, also when many are stored at once', [], async (t, store) => {
    const keys = Array.from({ length: 20 }, (_, i) => keyRecord(`key_${i}`, { externalId: 'ours-1' }))
    const there = await Promise.all(keys.map(key => store.addKey(key)))
    t.equal(there.filter(each => each === undefined).length, 1)
    const first = keys[there.indexOf(undefined)]
    for (const each of there) if (each) t.strictSame(each, first)
    t.equal(await store.countKeys(), 1)
    for (const key of keys)
      t.equal((await store.findByHash(key.hash))?.key.id, key === first ? key.id : undefined, key.id)
    t.strictSame(await store.addKey(keyRecord('key_99', { externalId: 'ours-1' })), first)
    t.strictSame(await store.listKeys(), [first])
  })

  keysTest('a key and a subscriber that are stored again stay as they are', [key], async (t, store) => {
    await store.changeKey('key_1', { revokedAt: 5_000 })
    t.strictSame(await store.ensureSubscriber({ ...padma, revokedAt: 6_000 }), padma)
    t.strictSame(await store.addKey(key), { ...key, revokedAt: 5_000 })
    t.strictSame(await store.findKey('key_1'), { ...key, revokedAt: 5_000 })
    t.strictSame(await store.listSubscribers(), [padma])
  })

  test('an id has up to 200 characters', async (t, store) => {
    const [keyId, subscriberId] = ['k'.repeat(longestId), 's'.repeat(longestId)]
    await store.ensureSubscriber(subscriber(subscriberId, 'Padma'))
    const key = keyRecord(keyId, { subscriberId, externalId: 'ours-1' })
    await store.addKey(key)
    t.equal(longestId, 200)
    t.hasStrict(await store.findByHash(key.hash), { key, subscriber: { id: subscriberId } })
    t.strictSame(await store.findByExternalId('ours-1'), key)
    t.strictSame(await store.listKeys(), [key])
    t.hasStrict(await store.findSubscriber('Padma'), { id: subscriberId })
    t.hasStrict(await store.listSubscribers(), [{ id: subscriberId }])
  })

  keysTest(
    'a replaced hash leads to the key until its instant, no earlier one longer',
    [key],
    async (t, store) => {
      const found = async (hash: string) => {
        const answer = await store.findByHash(hash)
        return answer && [answer.key.id, answer.key.hash, answer.subscriber.name, answer.validUntil]
      }
      t.equal(await store.replaceHash('key_1', 'second', 9_000), true)
      t.strictSame(await found('second'), ['key_1', 'second', 'Padma', null])
      t.strictSame(await found(key.hash), ['key_1', 'second', 'Padma', 9_000])
      t.equal(await store.replaceHash('key_1', 'third', 20_000), true)
      t.strictSame((await store.findKey('key_1'))?.previousHashes, [
        { hash: key.hash, validUntil: 9_000 },
        { hash: 'second', validUntil: 20_000 },
      ])
      t.equal(await store.replaceHash('key_1', 'fourth', 5_000), true)
      const ends = (await store.findKey('key_1'))?.previousHashes.map(({ validUntil }) => validUntil)
      t.strictSame(ends, [5_000, 5_000, 5_000], 'ending one overlap ends all')
      t.strictSame(await found('fourth'), ['key_1', 'fourth', 'Padma', null])
      t.equal((await store.listKeys()).length, 1)
      t.equal(await store.replaceHash('key_9', 'fifth', 5_000), false)
      t.equal(await found('fifth'), undefined, 'the hash of an unknown key leads nowhere')
    },
  )

  keysTest('a subscriber is revoked and reinstated, which its keys show', [key], async (t, store) => {
    for (const at of [5_000, null]) {
      t.equal(await store.setSubscriberRevoked('sub_a', at), true)
      t.equal((await store.findByHash(key.hash))?.subscriber.revokedAt, at)
    }
    t.equal(await store.setSubscriberRevoked('sub_9', 5_000), false)
  })

  test('a name belongs to one subscriber, also when many create it at once', async (t, store) => {
    const added = Array.from({ length: 20 }, (_, i) => store.ensureSubscriber(subscriber(`sub_${i}`, 'যমুনা')))
    const ids = new Set(idsOf(await Promise.all(added)))
    t.equal(ids.size, 1)
    t.equal((await store.listSubscribers()).length, 1)
    const [id = ''] = ids
    t.equal((await store.findSubscriber('যমুনা'))?.id, id)
    t.equal((await store.findSubscriber(id))?.name, 'যমুনা')
    t.equal(await store.findSubscriber('Surma'), undefined)
  })

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

  test('bytes come back as they were, until they are replaced or expire', async (t, store) => {
    const bytes = Buffer.from([0, 255, 10, 13, 0, 128])
    const later = Date.now() + 60_000
    t.equal(await store.readBytes('cell'), undefined)
    for (const written of [bytes, Buffer.from('newer')]) {
      await store.writeBytes('cell', written, later)
      t.strictSame(await store.readBytes('cell'), written)
    }
    t.equal(await store.readBytes('cell2'), undefined)
    await store.writeBytes('cell', Buffer.from('old'), Date.now() - 1_000)
    t.equal(await store.readBytes('cell'), undefined)
  })

  test('bytes that are more than the reader takes are not read', async (t, store) => {
    const later = Date.now() + 60_000
    await store.writeBytes('cell', Buffer.alloc(101, 1), later)
    t.equal(await store.readBytes('cell', 100), 'too_large')
    t.strictSame(await store.readBytes('cell', 101), Buffer.alloc(101, 1))
    await store.writeBytes('large', Buffer.alloc(1_048_577), later)
    t.equal(await store.readBytes('large'), 'too_large', 'a mebibyte where nothing is said')
  })

  const keepUntil = Date.now() + 86_400_000
  const now = Date.now()
  const windows = [
    spendingWindow({ name: 'minute:7', limit: 10_000, keepUntil }),
    spendingWindow({ name: 'day:1', limit: 40_000, keepUntil }),
  ]
  const spend = spendingStep({ provider: 'acc1', windows, wanted: 6_000, now })
  const nothingMore = { closure: null, reopenedAt: 0, claims: [] }
  const charged = (...amounts: number[]) => amounts.map(amount => ({ charged: amount, refunded: 0 }))
  const usedNow = (store: Store, ...names: string[]) => usedIn(store, 'acc1', names, now)

  test('a reservation is cut to whole units that fit into every window, and counted in all', async (t, store) => {
    for (const [wanted, granted, sum] of [
      [8_999, 6_000, 6_000],
      [6_000, 3_000, 9_000],
      [6_000, 0, 9_000],
    ] as const)
      t.strictSame(await store.spend({ ...spend, wanted }), {
        ...nothingMore,
        granted,
        spent: charged(sum, sum),
      })
    t.strictSame(await usedNow(store, 'day:1', 'minute:7', 'minute:8'), [9_000, 9_000, 0])
    t.strictSame(await usedIn(store, 'acc2', ['minute:7'], now), [0])
  })

  test('the tightest window decides, and a limit lowered below the count grants nothing', async (t, store) => {
    const [minute, day] = windows
    if (!minute || !day) return
    const nextMinute = { ...minute, name: 'minute:8' }
    t.equal((await store.spend({ ...spend, wanted: 9_000 })).granted, 9_000)
    const tight = { ...spend, windows: [nextMinute, { ...day, limit: 12_500 }], wanted: 9_000 }
    t.strictSame(await store.spend(tight), { ...nothingMore, granted: 3_000, spent: charged(3_000, 12_000) })
    const lowered = { ...spend, windows: [nextMinute, { ...day, limit: 5_000 }] }
    t.strictSame(await store.spend(lowered), { ...nothingMore, granted: 0, spent: charged(3_000, 12_000) })
  })

  const telling = (...told: [name: string, known: Spent, added: Spent][]) =>
    spendingStep({
      provider: 'acc1',
      now,
      windows: told.map(([name, known, added]) => spendingWindow({ name, keepUntil, known, added })),
    })
  const spentAs = (amount: number, refunded = 0): Spent => ({ charged: amount, refunded })

  test('what is given back may be granted again, and a window without a limit bounds nothing', async (t, store) => {
    await store.spend(spend)
    const back = telling(
      ['minute:7', spentAs(0), spentAs(0, 6_000)],
      ['day:1', spentAs(0), spentAs(0, 2_000)],
      ['minute:8', spentAs(0), spentAs(1_500)],
    )
    t.match(await store.spend({ ...back, wanted: 3_000 }), { spent: [{ refunded: 6_000 }, {}, {}] })
    t.strictSame(await usedNow(store, 'minute:7', 'day:1', 'minute:8'), [0, 4_000, 1_500])
    t.equal((await store.spend({ ...spend, wanted: 9_000 })).granted, 9_000)
  })

  test('what was lost is taken over from whoever knows it, before anything is granted', async (t, store) => {
    const known = windows.map(window => ({ ...window, known: spentAs(9_000, 3_000) }))
    const spent = { charged: 12_000, refunded: 3_000 }
    t.match(await store.spend({ ...spend, windows: known }), { granted: 3_000, spent: [spent, spent] })
    // What another gateway gave back since is no loss, although less is spent than this one knows.
    await store.spend(
      telling(['minute:7', spentAs(0), spentAs(0, 9_000)], ['day:1', spentAs(0), spentAs(0, 9_000)]),
    )
    t.match(await store.spend({ ...spend, windows: known }), { granted: 6_000 })
    t.strictSame(await usedNow(store, 'minute:7', 'day:1'), [6_000, 6_000])
    await store.spend(telling(['minute:7', spentAs(15_000, 3_000), spentAs(500)]))
    t.strictSame(await usedNow(store, 'minute:7'), [6_500], 'the larger of each, and what comes on top')
  })

  test('claims of consumers are granted as roomOf says, whatever came before', async (t, store) => {
    const random = createRandom(7, 'claims')
    const below = (most: number) => Math.floor(random() * most)
    const model = new Map<string, { used: number; by: Map<string, number> }>()
    const useOf = (name: string) => model.getOrInsertComputed(name, () => ({ used: 0, by: new Map() }))
    for (let step = 0; step < 60; step++) {
      const windows = ['minute:7', 'hour:2', 'day:1'].map((name, i) => {
        const limit = (i + 1) * 40_000
        const shares = { soloLimit: limit - 4_000, share: limit / (2 + below(20)), pacedLimit: below(limit) }
        return { name, limit, keepUntil, shares: below(8) === 0 ? undefined : shares }
      })
      const claims = ['a', 'b', 'c', 'd']
        .filter(() => below(step < 20 ? 4 : 2) === 0)
        .map(consumer => ({ consumer, wanted: below(4) * 3_000 }))
      const wanted = below(3) === 0 ? 3_000 : 0
      const reply = await store.spend({ ...spend, windows: windows.map(spendingWindow), wanted, claims })

      const uses = windows.map(({ name }) => useOf(name))
      const grantOf = (amount: number, rooms: number[]) =>
        Math.max(0, Math.floor(Math.min(amount, ...rooms) / 3_000)) * 3_000
      const forNobody = grantOf(
        wanted,
        windows.map(({ limit }, i) => limit - (uses[i]?.used ?? 0)),
      )
      for (const use of uses) {
        use.used += forNobody
        for (const { consumer } of claims) use.by.set(consumer, use.by.get(consumer) ?? 0)
      }
      const expected = claims.map(({ consumer, wanted: amount }) => {
        const rooms = windows.map(({ limit, shares }, i) => {
          const { used, by } = uses[i] ?? useOf('')
          return roomOf({ limit, used, usedBy: by.get(consumer) ?? 0, isAlone: by.size === 1 }, shares, 3_000)
        })
        const granted = grantOf(amount, rooms)
        for (const use of uses) {
          use.used += granted
          use.by.set(consumer, (use.by.get(consumer) ?? 0) + granted)
        }
        return { granted, heldIn: rooms.flatMap((room, i) => (room - granted < 3_000 ? [i] : [])) }
      })
      t.strictSame(reply.claims, expected, `step ${step}`)
      t.strictSame(
        usedOf(reply),
        uses.map(({ used }) => used),
      )
      if (below(3) > 0) continue
      // Some of it is given back, as after requests that failed.
      const returns: Spending['returns'][number][] = []
      const told = windows.map(({ name }, window) => {
        const { by, used } = useOf(name)
        let sum = 0
        for (const [consumer, amount] of by) {
          const part = below(amount + 1)
          returns.push({ consumer, window, by: part })
          by.set(consumer, amount - part)
          sum += part
        }
        useOf(name).used = used - sum
        return spendingWindow({ name, keepUntil, added: spentAs(0, sum) })
      })
      await store.spend(spendingStep({ provider: 'acc1', now, windows: told, returns }))
    }
    await closeIn(store, 'acc1', { ...closing, until: now + 9_000 })
    const claims = [{ consumer: 'a', wanted: 3_000 }]
    t.match(await store.spend({ ...spend, claims }), { granted: 0, claims: [{ granted: 0 }] })
  })

  test('a consumer that asks for nothing yet is there, so that another is not alone', async (t, store) => {
    const shares = { soloLimit: 36_000, share: 9_000, pacedLimit: 0 }
    const windows = [spendingWindow({ name: 'day:1', limit: 40_000, keepUntil, shares })]
    const of = async (...claims: { consumer: string; wanted: number }[]) =>
      (await store.spend({ ...spend, windows, wanted: 0, claims })).claims.map(({ granted }) => granted)
    t.strictSame(await of({ consumer: 'greedy', wanted: 15_000 }), [15_000], 'nobody else wants it')
    t.strictSame(await of({ consumer: 'greedy', wanted: 3_000 }, { consumer: 'other', wanted: 0 }), [0, 0])
    t.strictSame(await of({ consumer: 'greedy', wanted: 3_000 }), [0], 'it is remembered for the window')
    t.strictSame(await of({ consumer: 'other', wanted: 12_000 }), [9_000])
  })

  const closing = { at: now, reason: 'the provider answered 429' }

  test('a closed provider grants nothing until the later of two instants, and another is open', async (t, store) => {
    const closure = { ...closing, until: now + 9_000 }
    await closeIn(store, 'acc1', closure)
    await closeIn(store, 'acc1', { until: now + 5_000, at: now, reason: 'a shorter one' })
    const closed = { granted: 0, closure, reopenedAt: 0, spent: charged(0, 0), claims: [] }
    t.strictSame(await store.spend(spend), closed)
    t.strictSame(await store.spend({ ...spend, now: now + 8_999 }), closed)
    t.equal((await store.spend({ ...spend, provider: 'acc2' })).granted, 6_000)
    const again = await store.spend({ ...spend, now: now + 9_000 })
    t.strictSame(again, { ...nothingMore, granted: 6_000, spent: charged(6_000, 6_000) })
  })

  test("a closure that can't be right closes nothing, and gives way to one that can", async (t, store) => {
    const day = 86_400_000
    await closeIn(store, 'acc1', { ...closing, until: now + 3 * day })
    t.equal((await store.spend(spend)).granted, 6_000, 'the provider has no window of that length')
    await closeIn(store, 'acc1', { ...closing, at: now + day / 4, until: now + day / 2 })
    t.equal((await store.spend(spend)).closure, null, 'of a clock that was set back since')
    await closeIn(store, 'acc1', { ...closing, until: now + 9_000 })
    t.match(await store.spend(spend), { closure: { until: now + 9_000 } })
    await store.reopen('acc2', now + 3 * day)
    t.equal((await closureIn(store, 'acc2', now)).reopenedAt, 0, 'nor is a reopening of such a clock known')
  })

  test('a reopening ends the closure, says what it was, and refuses closures from before it', async (t, store) => {
    const closure = { ...closing, until: now + 9_000 }
    const found = () => closureIn(store, 'acc1', now)
    t.strictSame(await found(), { closedUntil: null, reason: null, reopenedAt: 0 })
    await closeIn(store, 'acc1', closure)
    t.strictSame(await found(), { closedUntil: closure.until, reason: closing.reason, reopenedAt: 0 })
    t.strictSame(await store.reopen('acc1', now + 10), { closure, reopenedAt: now + 10 })
    t.strictSame(await found(), { closedUntil: null, reason: null, reopenedAt: now + 10 })
    t.match(await store.spend(spend), { granted: 6_000, closure: null, reopenedAt: now + 10 })
    t.equal((await closureIn(store, 'acc2', now)).reopenedAt, 0, 'another provider is as it was')

    t.match(await closeIn(store, 'acc1', closure, 0), { closure: null, reopenedAt: now + 10 })
    t.equal((await found()).closedUntil, null, 'who does not know the reopening closes nothing')
    await closeIn(store, 'acc1', closure, now + 10)
    t.hasStrict(await store.spend(spend), { granted: 0, closure })
    const again = await store.reopen('acc1', now)
    t.equal(again.reopenedAt, now + 11, 'later than any before, whatever the clock of the caller')
    await closeIn(store, 'acc1', closure, null)
    t.equal((await found()).closedUntil, closure.until, 'who knows nothing yet is believed')
    await closeIn(store, 'acc1', { ...closure, until: now + 500 }, now + 20)
    t.match(await found(), { closedUntil: now + 500, reopenedAt: now + 20 }, 'a lost one is taken over')
  })

  test('50 reservations at once never cross a limit together, and leave nothing that would fit', async (t, store) => {
    const windows = [
      spendingWindow({ name: 'minute:7', limit: 100_000, keepUntil }),
      spendingWindow({ name: 'minute:8', limit: 83_000, keepUntil }),
    ]
    const requests = Array.from({ length: 50 }, (_, i) =>
      store.spend({ ...spend, windows, wanted: 3_000 * (1 + (i % 4)) }),
    )
    const granted = (await Promise.all(requests)).reduce((sum, reply) => sum + reply.granted, 0)
    t.equal(granted, 81_000)
    t.strictSame(await usedNow(store, 'minute:7', 'minute:8'), [81_000, 81_000])
  })

  test('a holder that has lost its lease writes nothing, and deleted bytes are gone and counted', async (t, store) => {
    const later = Date.now() + 60_000
    await store.acquireLease('cell', 'first', 20)
    const acquire = async () => (await store.acquireLease('cell', 'second', 60_000)) === 'acquired'
    await until('the lease has ended by itself', acquire)
    t.equal(await store.writeBytes('cell', Buffer.from('second'), later, 'second'), true)
    t.equal(await store.writeBytes('cell', Buffer.from('first'), later, 'first'), false)
    t.strictSame(await store.readBytes('cell'), Buffer.from('second'))
    t.equal(await store.writeBytes('cell', Buffer.from('again'), later, 'second'), true)
    await store.releaseLease('cell', 'second')
    t.equal(await store.writeBytes('cell', Buffer.from('late'), later, 'second'), false)
    t.equal(await store.writeBytes('cell', Buffer.from('alone'), later), true)
    t.strictSame(await store.hasBytes(['cell', 'none']), [true, false])
    t.strictSame(await store.hasBytes([]), [])
    t.equal(await store.deleteBytes(['cell', 'none']), 1)
    t.strictSame(await store.hasBytes(['cell', 'none']), [false, false])
    t.equal(await store.readBytes('cell'), undefined)
  })

  test('entries are found among keys that lie side by side or far apart', async (t, store) => {
    const all = Array.from({ length: 400 }, (_, i) => `cells:${1_000 + i}`)
    const later = Date.now() + 60_000
    for (const key of all) await store.writeBytes(key, Buffer.from('weather'), later)
    const apart = all.filter((_, i) => i % 40 === 39)
    for (const keys of [all, all.slice(7, 11), apart, apart.toReversed()]) {
      const withOthers = keys.flatMap(key => [key, `${key}.5`])
      t.strictSame(
        await store.hasBytes(withOthers),
        withOthers.map((_, i) => i % 2 === 0),
      )
    }
    t.equal(await store.deleteBytes([...apart, 'cells:9']), apart.length)
    t.strictSame(
      await store.hasBytes(all),
      all.map(key => !apart.includes(key)),
      'no other is gone',
    )
  })

  test('a lease has one holder at a time', async (t, store) => {
    t.equal(await store.acquireLease('cell', 'one', 60_000), 'acquired')
    t.equal(await store.acquireLease('cell', 'other', 60_000), 'held')
    t.equal(await store.acquireLease('cell', 'one', 60_000), 'acquired', 'a repeated request')
    t.equal(await store.acquireLease('elsewhere', 'other', 60_000), 'acquired', 'another key is free')
    t.equal(await store.renewLease('cell', 'one', 60_000), true)
    t.equal(await store.renewLease('cell', 'other', 60_000), false)
    await store.releaseLease('cell', 'other')
    t.equal(await store.acquireLease('cell', 'third', 60_000), 'held', 'only its holder releases it')
    await store.releaseLease('cell', 'one')
    t.equal(await store.renewLease('cell', 'one', 60_000), false)
    t.equal(await store.acquireLease('cell', 'third', 60_000), 'acquired')
  })

  test('a failed load is known for a moment to those who ask for its lease', async (t, store) => {
    await store.acquireLease('cell', 'one', 60_000)
    // Its script is there, so that the two that follow arrive one after the other, within the moment.
    await store.releaseLease('cell', 'nobody', '{}')
    const [, asked] = await Promise.all([
      store.releaseLease('cell', 'one', '{"code":"down"}'),
      store.acquireLease('cell', 'other', 60_000),
    ])
    t.strictSame(asked, { failure: '{"code":"down"}' })
    t.equal(await store.acquireLease('cell', 'other', 60_000, true), 'acquired', 'over the failure')
    t.equal(await store.acquireLease('cell', 'third', 60_000, true), 'held')
    await store.releaseLease('cell', 'other', '{}')
    const acquire = async () => (await store.acquireLease('cell', 'third', 60_000)) === 'acquired'
    await until('it is forgotten', acquire)
  })

  test('a heartbeat records who is alive and what is in demand, until both expire', async (t, store) => {
    const now = Date.now()
    const beat = (afterMs: number, ...requested: string[]) =>
      store.heartbeat(heartbeatOf('one', { wantedForMs: 5_000, requested, now: now + afterMs }))
    const wantedSince = async (afterMs: number, topic = 'q') =>
      (await store.wanted(topic, now + afterMs)).sort()
    const counted = (wanted: number) => ({ instances: 1, variants: 1, wanted })
    t.strictSame(await beat(0, 'a', 'b'), counted(2))
    t.strictSame(await beat(1_000, 'b', 'c'), counted(3))
    t.strictSame(await wantedSince(0), ['a', 'b', 'c'])
    t.strictSame(await wantedSince(1_000), ['b', 'c'])
    t.strictSame(await wantedSince(0, 'other'), [])
    t.strictSame(await beat(5_000), counted(2))
    t.strictSame(await beat(6_000, 'd'), counted(1))
  })

  test('the instances that are alive are known with what they report, until they stop', async (t, store) => {
    const beat = (instance: string, settings: string | null, report: string) =>
      store.heartbeat(heartbeatOf(instance, { settings, report }))
    const alive = async (withinMs = 20_000) =>
      Object.fromEntries((await store.aliveInstances(withinMs)).map(({ id, report }) => [id, report]))
    t.strictSame(await alive(), {})
    await beat('one', 'a', 'first')
    await beat('two', 'a', 'x'.repeat(2_048))
    await beat('three', 'a', 'third')
    await beat('one', 'a', 'second')
    t.strictSame(await alive(), { one: 'second', two: 'x'.repeat(2_048), three: 'third' })
    await beat('three', 'a', 'x'.repeat(2_049))
    t.equal((await alive()).three, undefined, 'it is too large')
    for (const { silentForMs } of await store.aliveInstances(20_000))
      t.ok(silentForMs >= 0 && silentForMs < 20_000, `${silentForMs}`)
    t.strictSame(await alive(-1), {})
    t.match(await beat('one', null, 'stopped'), { instances: 3 }, 'it may owe something')
    await store.leave('one')
    t.strictSame(Object.keys(await alive()).sort(), ['three', 'two'])
    await store.leave('unknown')
    t.match(await beat('two', 'a', 'last'), { instances: 2 })
  })

  test('the size of the data is known', async (t, store) => {
    const { usedBytes, maxBytes } = await store.size()
    t.ok(usedBytes > 4_096)
    t.equal(maxBytes, 0, 'without a limit')
  })

  test('a change record that is too long is refused', async (t, store) => {
    const later = Date.now() + 60_000
    await t.rejects(store.appendChangeRecord('keys', 'x'.repeat(4_097), later), {
      name: 'StoreError',
      message: 'a change record must have at most 4096 bytes, got 4097',
    })
    t.ok(await store.appendChangeRecord('keys', 'x'.repeat(4_096), later))
    t.equal((await store.changeRecordsAfter('keys', 0)).records.length, 1)
  })

  test('of very many change records the latest are read, and that there were more', async (t, store) => {
    const later = Date.now() + 60_000
    const first = await store.appendChangeRecord('keys', 'first', later)
    for (let i = 0; i < 1_000; i++) await store.appendChangeRecord('keys', `key_${i}`, later)
    const { records, complete } = await store.changeRecordsAfter('keys', first)
    t.strictSame([records.length, complete], [1_000, false])
    t.equal(records.at(-1)?.text, 'key_999')
    t.equal((await store.changeRecordsAfter('keys', 0)).complete, false)
  })

  test('change records are numbered in their order and read from any number on', async (t, store) => {
    const later = Date.now() + 60_000
    const numbers = [
      await store.appendChangeRecord('purges', 'one', later),
      await store.appendChangeRecord('purges', 'two', later),
      await store.appendChangeRecord('purges', 'two', later),
    ]
    const [first = 0, second = 0, third = 0] = numbers
    t.ok(first >= 1 && second > first && third > second)
    const after = (number = 0, topic: ChangeTopic = 'purges') => store.changeRecordsAfter(topic, number)
    t.strictSame(
      (await after()).records.map(({ text }) => text),
      ['one', 'two', 'two'],
    )
    t.strictSame(await after(second), { records: [{ number: third, text: 'two' }], complete: true })
    t.strictSame(await after(third), { records: [], complete: true })
    t.strictSame(await after(0, 'keys'), { records: [], complete: true })
    t.strictSame(await after(7, 'keys'), { records: [], complete: false }, 'the one with that number is gone')
    t.equal((await after(third + 1_000)).complete, false, 'a number that was never given')
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

  test('it answers a ping, and a closed store throws StoreError', async (t, store) => {
    await store.ping()
    await store.close()
    await t.rejects(store.ping(), StoreError)
    await t.rejects(store.findByHash('x'), StoreError)
    await t.rejects(store.commit(batchOf('one', 1, [anEntry])), StoreError)
    await t.rejects(store.spend(spend), StoreError)
    await t.rejects(store.reopen('acc1', 1), StoreError)
  })
}
