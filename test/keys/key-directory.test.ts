// Without it a revoked key could stay valid, or an outage of the store turn good keys into 401.

import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { utcDayMs } from '../../src/common/calendar.ts'
import { createAuthenticate, emptyKeyMemo } from '../../src/keys/authentication.ts'
import { announceChange, createKeyDirectory, type KeyCopy } from '../../src/keys/key-directory.ts'
import { createKey, hashOf, testKeyPrefix } from '../../src/keys/key-form.ts'
import { testTier } from '../../src/keys/test-keys.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { type FoundKey, type KeyChange, type Store, StoreError } from '../../src/stores/store.ts'
import { heartbeatOf } from '../stores/usage-instance.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { manualClock } from '../support/manual-clock.ts'

const tiers = { free: 100, starter: 1_000 }

/** An embedded store with one key, a directory before it that reads changes only on demand, and a count of look-ups. */
const setUp = async (t: Test) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  const state = { lookUps: 0, away: false, lost: false, held: undefined as Promise<void> | undefined }
  const seen = <Value>(value: Promise<Value>): Promise<Value> => {
    if (state.away) throw new StoreError('away')
    return value
  }
  const directory = createKeyDirectory(
    {
      findByHash: async hash => {
        state.lookUps += 1
        const found = seen(store.findByHash(hash))
        await state.held
        return state.lost ? undefined : found
      },
      changeRecordsAfter: async (topic, number) => seen(store.changeRecordsAfter(topic, number)),
      appendChangeRecord: store.appendChangeRecord,
    },
    clock,
  )
  t.teardown(async () => {
    directory.close()
    await store.close()
  })
  await addKey(store, 'key_1', 'hash-1')
  // At first there is no change record, so the first read appends one.
  await directory.readChanges()
  await directory.readChanges()
  return { clock, store, state, directory }
}

/** Stores a change of a key, and announces it. */
const change = async (store: Store, id: string, what: KeyChange, now: number) => {
  await store.changeKey(id, what)
  await announceChange(store, id, now)
}

const addKey = async (store: Store, id: string, hash: string) => {
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey({ ...sampleKey(id), hash, previousHashes: [] })
}
const revokedAt = (found: FoundKey | 'unknown') => (found === 'unknown' ? found : found.key.revokedAt)

t.test('a copy is looked up again after a minute, whatever changes were read', async t => {
  const { clock, store, state, directory } = await setUp(t)
  await directory.find('hash-1')
  await store.changeKey('key_1', { revokedAt: 7 })
  clock.advance(59_999)
  t.equal(revokedAt(await directory.find('hash-1')), null)
  clock.advance(1)
  t.equal(revokedAt(await directory.find('hash-1')), 7)
  t.equal(state.lookUps, 2)
  clock.advance(-3_600_000)
  await directory.find('hash-1')
  t.equal(state.lookUps, 3, 'a clock that was put back makes nothing fresh for an hour')
})

t.test('a change record drops the copies of its key, or of all keys of its subscriber, only', async t => {
  const { clock, store, state, directory } = await setUp(t)
  await addKey(store, 'key_2', 'hash-2')
  const both = async () => [
    revokedAt(await directory.find('hash-1')),
    revokedAt(await directory.find('hash-2')),
  ]
  await both()
  await change(store, 'key_1', { revokedAt: 7 }, clock.now())
  t.strictSame(await both(), [null, null], 'not read yet')
  await directory.readChanges()
  t.strictSame(await both(), [7, null])
  t.equal(state.lookUps, 3, 'the other was not looked up again')
  await announceChange(store, sampleSubscriber.id, clock.now())
  await directory.readChanges()
  await both()
  t.equal(state.lookUps, 5)
})

t.test('an unknown key that is made is found once its change record is read', async t => {
  const { clock, store, state, directory } = await setUp(t)
  t.equal(await directory.find('hash-2'), 'unknown')
  await directory.readChanges()
  t.equal(await directory.find('hash-2'), 'unknown')
  t.equal(state.lookUps, 1, 'without a change nothing is forgotten')
  await addKey(store, 'key_2', 'hash-2')
  t.equal(await directory.find('hash-2'), 'unknown')
  await announceChange(store, 'key_2', clock.now())
  await directory.readChanges()
  t.not(await directory.find('hash-2'), 'unknown')
})

t.test('a look-up that was under way when a change was read leaves no copy', async t => {
  const { clock, store, state, directory } = await setUp(t)
  const hold = Promise.withResolvers<void>()
  state.held = hold.promise
  const before = directory.find('hash-1')
  await change(store, 'key_1', { revokedAt: 7 }, clock.now())
  await directory.readChanges()
  state.held = undefined
  t.equal(revokedAt(await directory.find('hash-1')), 7, 'who comes later does not join it')
  hold.resolve()
  t.equal(revokedAt(await before), null, 'it had read the key before')
  t.equal(revokedAt(await directory.find('hash-1')), 7)
  t.equal(state.lookUps, 2)
})

t.test(
  'a known key whose record vanished is a fault of the store, until the record is there again',
  async t => {
    const { clock, state, directory } = await setUp(t)
    await directory.find('hash-1')
    state.lost = true
    t.equal(revokedAt(await directory.find('hash-1')), null, 'the copy is fresh')
    clock.advance(60_000)
    const gone = { code: 'store_unavailable', message: 'the record of key key_1 is gone from the store' }
    await t.rejects(async () => directory.find('hash-1'), gone)
    clock.advance(999)
    for (let i = 0; i < 10; i++) await t.rejects(async () => directory.find('hash-1'), gone)
    t.equal(state.lookUps, 2, 'the loss is remembered')
    clock.advance(1)
    await t.rejects(async () => directory.find('hash-1'), gone)
    t.equal(state.lookUps, 3, 'for a second')
    t.equal(await directory.find('hash-2'), 'unknown', 'of another key nothing was known')
    state.lost = false
    clock.advance(1_000)
    t.equal(revokedAt(await directory.find('hash-1')), null)
    t.equal(revokedAt(await directory.find('hash-1')), null, 'and stays')
    t.equal(state.lookUps, 5)
  },
)

t.test('a copy of a key that changed is no answer, whether the store is away or lost the key', async t => {
  const { clock, store, state, directory } = await setUp(t)
  await directory.find('hash-1')
  await change(store, 'key_1', { revokedAt: 7 }, clock.now())
  await directory.readChanges()
  for (const fault of ['away', 'lost'] as const) {
    state[fault] = true
    await t.rejects(async () => directory.find('hash-1'), { name: 'StoreError' }, fault)
    state[fault] = false
  }
  clock.advance(1_000)
  t.equal(revokedAt(await directory.find('hash-1')), 7)
})

t.test('a lost key that was found again stays found when the clock is set back', async t => {
  const { clock, state, directory } = await setUp(t)
  await directory.find('hash-1')
  clock.advance(60_000)
  state.lost = true
  await t.rejects(async () => directory.find('hash-1'), StoreError)
  state.lost = false
  clock.advance(1_000)
  t.equal(revokedAt(await directory.find('hash-1')), null)
  clock.advance(-1_000)
  t.equal(revokedAt(await directory.find('hash-1')), null)
})

t.test('change records that may be missing drop all copies once: the log begins anew', async t => {
  const { clock, store, state, directory } = await setUp(t)
  await announceChange(store, 'key_9', clock.now())
  await directory.readChanges()
  await directory.find('hash-1')
  // Heartbeats sweep expired records.
  clock.advance(401 * 86_400_000)
  await store.heartbeat(heartbeatOf('one', { now: clock.now() }))
  clock.advance(-401 * 86_400_000)
  const before = state.lookUps
  for (const dropped of [true, false, false]) {
    const { lookUps } = state
    await directory.readChanges()
    await directory.find('hash-1')
    t.equal(state.lookUps > lookUps, dropped)
  }
  t.equal(before, 1)
})

t.test(
  '20,000 wrong keys are known as such, and more throw out the oldest of them and no good one',
  async t => {
    const { state, directory } = await setUp(t)
    await directory.find('hash-1')
    for (let i = 0; i < 20_000; i++) await directory.find(`wrong-${i}`)
    for (const [hash, lookUps] of [
      ['wrong-0', 20_001],
      ['wrong-20000', 20_002],
      ['wrong-1', 20_003],
      ['hash-1', 20_003],
    ] as const) {
      await directory.find(hash)
      t.equal(state.lookUps, lookUps, hash)
    }
  },
)

t.test('while the store is away copies are used however old, and unknown keys are no refusals', async t => {
  const { clock, state, directory } = await setUp(t)
  await directory.find('hash-1')
  t.equal(await directory.find('nobody'), 'unknown')
  state.away = true
  await directory.readChanges()
  await t.rejects(async () => directory.find('nobody'), StoreError)
  clock.advance(7 * 86_400_000)
  t.equal(revokedAt(await directory.find('hash-1')), null)
  const { lookUps } = state
  clock.advance(999)
  t.equal(revokedAt(await directory.find('hash-1')), null)
  t.equal(state.lookUps, lookUps, 'a store that has just failed is not read for each request')
  clock.advance(1)
  await directory.find('hash-1')
  t.equal(state.lookUps, lookUps + 1)
  await t.rejects(async () => directory.find('another'), StoreError)
  state.away = false
  t.equal(await directory.find('nobody'), 'unknown')
})

t.test('only a failure of the store is bridged by a copy', async t => {
  const { clock, state, directory } = await setUp(t)
  await directory.find('hash-1')
  state.held = Promise.reject(new TypeError('a fault of ours'))
  clock.advance(60_000)
  await t.rejects(async () => directory.find('hash-1'), TypeError)
})

t.test('what is wrong at sight costs no look-up, and 256 first requests of a key one', async t => {
  const { clock, store, state, directory } = await setUp(t)
  const good = createKey()
  await addKey(store, 'key_2', hashOf(good))
  const authenticate = createAuthenticate(directory, tiers, clock)
  const mistyped = good.slice(0, -1) + (good.endsWith('a') ? 'b' : 'a')
  for (const presented of [undefined, '', 'sk_live_x', 'svc_live_', `${good}x`, mistyped])
    t.ok('refusal' in (await authenticate(presented)))
  t.equal(state.lookUps, 0)
  const answers = await Promise.all(Array.from({ length: 256 }, () => authenticate(good)))
  t.equal(answers.filter(answer => 'client' in answer && answer.client.limit === 100).length, 256)
  t.equal(state.lookUps, 1)
})

t.test('a former key is refused by the clock, and a limit of its own goes before the tier', async t => {
  const { clock, store, directory } = await setUp(t)
  const [first, second] = [createKey(), createKey()]
  await addKey(store, 'key_2', hashOf(first))
  const authenticate = createAuthenticate(directory, tiers, clock)
  await store.replaceHash('key_2', hashOf(second), clock.now() + 1_000)
  for (const key of [first, second])
    t.hasStrict(await authenticate(key), { client: { keyId: 'key_2', limit: 100 } })
  clock.advance(999)
  t.ok('client' in (await authenticate(first)))
  clock.advance(1)
  t.strictSame(await authenticate(first), { refusal: 'replaced', keyId: 'key_2' })
  t.ok('client' in (await authenticate(second)))

  for (const [what, limit] of [
    [{ limit: 7 }, 7],
    [{ tier: 'starter' }, 7],
    [{ limit: null }, 1_000],
    [{ tier: 'gone', limit: 3 }, 3],
    [{ limit: null }, undefined],
  ] as const) {
    await change(store, 'key_2', what, clock.now())
    await directory.readChanges()
    if (limit) t.match(await authenticate(second), { client: { limit } }, JSON.stringify(what))
    else await t.rejects(async () => authenticate(second), { code: 'tier_not_configured' })
  }
})

t.test('the end of a key is announced for its last seven days', async t => {
  const { clock, store, directory } = await setUp(t)
  const key = createKey()
  await addKey(store, 'key_2', hashOf(key))
  const authenticate = createAuthenticate(directory, tiers, clock)
  for (const [ms, endsSoon] of [
    [7 * utcDayMs, true],
    [7 * utcDayMs + 1, false],
  ] as const) {
    await change(store, 'key_2', { expiresAt: clock.now() + ms }, clock.now())
    await directory.readChanges()
    t.match(await authenticate(key), { client: { endsSoon } })
  }
})

t.test('50,000 keys have a copy, and of one more the oldest has none', async t => {
  const directory = createKeyDirectory(
    {
      findByHash: async hash =>
        ({ key: sampleKey(hash), subscriber: sampleSubscriber }) as unknown as FoundKey,
      changeRecordsAfter: async () => ({ records: [], complete: true }),
      appendChangeRecord: async () => 1,
    },
    manualClock(),
  )
  t.teardown(directory.close)
  await directory.find('hash-1')
  const oldest = directory.copyOf('hash-1')
  for (let i = 0; i < 50_000; i++) await directory.find(`hash-${i}`)
  t.ok(directory.copyOf('hash-0'))
  await directory.find('hash-50000')
  t.notOk(directory.copyOf('hash-1'))
  t.equal(oldest?.freshUntil, 0, 'whoever holds it has to look it up again')
})

t.test('a copy that another one replaced does not stay in memory', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { clock, directory } = await setUp(t)
  const newCopy = async () => {
    clock.advance(60_000)
    await directory.find('hash-1')
    return new WeakRef(directory.copyOf('hash-1') ?? {})
  }
  const [former, present] = [await newCopy(), await newCopy()]
  await turn()
  collect()
  t.strictSame([former.deref(), present.deref()], [undefined, directory.copyOf('hash-1')])
})

t.test('a change looks at the copies of its key alone', async t => {
  const records: { number: number; text: string }[] = []
  const looked: string[] = []
  const timers = t.capture(globalThis, 'setInterval', setInterval)
  const found = (id: string) => ({
    get key() {
      looked.push(id)
      return sampleKey(id)
    },
    subscriber: { ...sampleSubscriber, id: `of ${id}` },
    validUntil: null,
  })
  const directory = createKeyDirectory(
    {
      findByHash: async hash => found(hash) as unknown as FoundKey,
      changeRecordsAfter: async () => ({ records: records.splice(0), complete: true }),
      appendChangeRecord: async () => 1,
    },
    manualClock(),
  )
  t.teardown(directory.close)
  t.match(timers(), [{ args: [Function, 500] }], 'the log is read every half second')
  for (const id of ['key_1', 'key_2', 'key_3']) await directory.find(id)
  records.push({ number: 1, text: 'begin' })
  await directory.readChanges()
  const freshUntil = () => ['key_1', 'key_2', 'key_3'].map(id => directory.copyOf(id)?.freshUntil === 0)
  for (const id of ['key_1', 'key_2', 'key_3']) await directory.find(id)
  looked.length = 0
  records.push({ number: 2, text: 'key_2' })
  await directory.readChanges()
  t.strictSame(freshUntil(), [false, true, false])
  t.strictSame(looked, [])
  records.push({ number: 3, text: 'of key_3' })
  await directory.readChanges()
  t.strictSame(freshUntil(), [false, true, true], 'a subscriber too')
})

t.test('a key is known on another connection, and revoked there too', async t => {
  const { clock, store } = await setUp(t)
  const presented = createKey()
  await addKey(store, 'key_2', hashOf(presented))
  const copyAs = async (what: KeyChange): Promise<KeyCopy> => {
    await store.changeKey('key_2', what)
    const found = await store.findByHash(hashOf(presented))
    return { found: found as FoundKey, freshUntil: clock.now() + 60_000 }
  }
  let copy: KeyCopy | undefined = await copyAs({})
  let lookedUp = 0
  const copyOf = () => {
    lookedUp += 1
    return copy
  }
  const authenticate = createAuthenticate({ copyOf, find: () => 'unknown' }, tiers, clock)
  const onAnother = () => authenticate(presented, emptyKeyMemo())
  for (let i = 0; i < 3; i++) t.hasStrict(onAnother(), { client: { keyId: 'key_2', limit: 100 } })
  t.equal(lookedUp, 1, 'the other connections found it')
  const memo = emptyKeyMemo()
  const onOne = () => authenticate(presented, memo) as { client?: unknown }
  t.equal(onOne().client, onOne().client, 'a connection has one client, which the meter ties its count to')

  // As the directory does when it reads that the key has changed.
  copy.freshUntil = 0
  copy = await copyAs({ revokedAt: 7 })
  for (let i = 0; i < 2; i++) t.hasStrict(onAnother(), { refusal: 'key-revoked' })
  t.equal(lookedUp, 3, 'what is refused is not remembered')

  copy = await copyAs({ revokedAt: null })
  t.hasStrict(onAnother(), { client: { keyId: 'key_2' } })
  copy = undefined
  clock.advance(-120_000)
  t.hasStrict(onAnother(), { refusal: 'unknown' }, 'a clock that goes back keeps nothing fresh')
})

t.test('20,000 good keys are known at least, for a minute after their last request', async t => {
  const timers: { work: () => void; ms: number }[] = []
  const setInterval = (work: () => void, ms: number) => {
    timers.push({ work, ms })
    return { unref: () => {} }
  }
  t.intercept(globalThis, 'setInterval', { value: setInterval })
  const clock = manualClock()
  const found = { key: sampleKey('key_1'), subscriber: sampleSubscriber, validUntil: null }
  const copy = { found, freshUntil: clock.now() + 60_000 }
  let lookedUp = 0
  const copyOf = () => {
    lookedUp += 1
    return copy
  }
  const authenticate = createAuthenticate({ copyOf, find: () => 'unknown' }, tiers, clock)
  const present = (key = '', memo = emptyKeyMemo()) => {
    authenticate(key, memo)
    return lookedUp
  }
  const keys = Array.from({ length: 20_000 }, () => createKey())
  const [first, second, third] = keys
  const memo = emptyKeyMemo()
  present(third, memo)
  for (const key of keys) present(key)
  t.equal(present(first), 20_000)
  t.equal(present(second), 20_001, 'the oldest are forgotten')
  t.equal(present(first), 20_001, 'unless they are presented again')
  t.equal(present(third, memo), 20_001, 'a connection knows its own')
  const passMinute = () => {
    for (const { work } of timers) work()
  }
  passMinute()
  t.equal(present(first), 20_001)
  passMinute()
  passMinute()
  t.equal(present(first), 20_002)
  t.strictSame(
    timers.map(({ ms }) => ms),
    [60_000],
  )
})

t.test('a client has the limits of its tier, and the nearest end of its key', async t => {
  const { clock, store, directory } = await setUp(t)
  const [former, key, ofTests] = [createKey(), createKey(), createKey(testKeyPrefix)]
  await addKey(store, 'key_2', hashOf(former))
  const testKey = { ...sampleKey('key_3'), hash: hashOf(ofTests), previousHashes: [], tier: testTier }
  await store.addKey(testKey)
  const rates = { perSecond: null, burst: null, perMinute: 60 }
  const authenticate = createAuthenticate(directory, { ...tiers, [testTier]: 9 }, clock, { free: rates })
  // On one connection.
  const memo = emptyKeyMemo()
  const clientOf = async (presented: string) => {
    const decision = await authenticate(presented, memo)
    return 'client' in decision ? decision.client : undefined
  }
  for (let i = 0; i < 2; i++) {
    t.hasStrict(await clientOf(former), { keyId: 'key_2', limit: 100, endsAt: null, isTest: false, rates })
    t.hasStrict(await clientOf(ofTests), { keyId: 'key_3', limit: 9, isTest: true })
    t.equal((await clientOf(ofTests))?.rates, undefined)
  }
  const [soon, later] = [clock.now() + 1_000, clock.now() + 9_000]
  await store.replaceHash('key_2', hashOf(key), soon)
  await change(store, 'key_2', { expiresAt: later }, clock.now())
  await directory.readChanges()
  t.equal((await clientOf(former))?.endsAt, soon)
  t.equal((await clientOf(key))?.endsAt, later)
  authenticate.applyTiers({ free: 7 })
  t.match(await clientOf(key), { limit: 7, rates: undefined })
  t.equal((await clientOf(key))?.rates, undefined)
})

t.test('a burst without a limit by the second limits nothing', async t => {
  const { clock, store, directory } = await setUp(t)
  const authenticate = createAuthenticate(directory, tiers, clock)
  const rates = { perSecond: null, burst: 5, perMinute: null }
  for (const [id, own, limited] of [
    ['key_2', rates, false],
    ['key_3', { ...rates, perMinute: 60 }, true],
  ] as const) {
    const key = createKey()
    await store.addKey({ ...sampleKey(id), hash: hashOf(key), previousHashes: [], rates: own })
    const found = await authenticate(key)
    t.equal('client' in found && found.client.rates !== undefined, limited, id)
  }
})
