// What every store keeps of keys and their subscribers.

import type { Test } from 'tap'
import { longestId } from '../../../src/stores/records.ts'
import type { KeyChange, KeyRecord, KeyWithSubscriber, Store, Subscriber } from '../../../src/stores/store.ts'
import { sampleKey } from '../../support/key-records.ts'
import type { ContractTest } from './contract-test.ts'

const subscriber = (id: string, name: string, createdAt = 1_000): Subscriber => ({
  ...{ id, name, createdAt, revokedAt: null },
})
const padma = subscriber('sub_a', 'Padma')
const keyRecord = (id: string, given: Partial<KeyRecord> = {}): KeyRecord => ({
  ...sampleKey(id),
  previousHashes: [],
  ...given,
})
const idsOf = (records: readonly { id: string }[]): string[] => records.map(({ id }) => id)

export const keysContract = (test: ContractTest): void => {
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
}
