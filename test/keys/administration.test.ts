// Without it hostile names could enter lists and logs, and one name could be two subscribers.

import t, { type Test } from 'tap'
import { utcDayMs } from '../../src/common/calendar.ts'
import { createAdministration, type KeyRequest } from '../../src/keys/administration.ts'
import { createKey, hashOf, testKeyPrefix } from '../../src/keys/key-form.ts'
import { cellsLoaded } from '../../src/keys/usage-detail.ts'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { manualClock } from '../support/manual-clock.ts'
import { hostileText, rawControlIn } from '../support/raw-controls.ts'
import { calendar, storeInMemory } from './meters.ts'

const setUp = (t: Test) => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const store = storeInMemory(t, clock)
  /** On a store that does some things otherwise. */
  const on = (changes: Partial<Store>) =>
    createAdministration({
      ...{ store: { ...store, ...changes }, tiers: { free: 100, paid: 500 }, calendar, clock },
    })
  return { clock, store, on, administration: on({}) }
}
const request = (externalId: string, more: Partial<KeyRequest> = {}): KeyRequest => ({
  ...{ subscriber: 'A', tier: 'free', externalId, ...more },
})

const signs = [
  ...'\u0000\u0007\u001b\n\u007f\u0080\u009b\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\ufeff',
  '\ud83d',
]

t.test('a name with a control or a mark of direction in it is refused, and so is a key', async t => {
  const { administration } = setUp(t)
  for (const sign of signs)
    await t.rejects(administration.createKey(`A${sign}B`, 'free'), {
      name: 'InputError',
      message:
        /^the subscriber's name must be 1 to 100 characters on one line, without control or bidi characters, got "A\\\w+B"$/,
    })
  t.strictSame(await administration.listSubscribers(), [])
  await t.rejects(administration.createKey(`for ${createKey()}`, 'free'), {
    message: 'the subscriber\'s name can\'t contain an API key, got "for svc_live_…"',
  })
  await t.rejects(administration.createKey('sub_1', 'free'), { message: /name can't begin with sub_/ })
})

t.test('a name is found in any encoding of its letters, with blanks around it', async t => {
  const { administration } = setUp(t)
  const typed = '\u0986\u09ac\u09b9\u09be\u0993\u09df\u09be'
  const request = { subscriber: typed, tier: 'free', externalId: typed }
  const [created] = (await Array.fromAsync(administration.createKeys([request]))).flat()
  for (const name of [typed, typed.normalize('NFC'), ` ${typed} `]) {
    t.equal((await administration.revokeSubscriber(name)).status, 'revoked')
    t.equal((await administration.showSubscriber(name)).keys, 1)
    t.equal((await administration.reinstateSubscriber(name)).status, 'active')
    t.equal((await administration.showKey(`external:${name}`)).id, created?.id)
  }
})

t.test('a sentence about a name is short and printable', async t => {
  const { administration } = setUp(t)
  for (const name of [hostileText, 'x'.repeat(1_000_000), `sub_${hostileText.trim()}`])
    for (const act of [
      () => administration.createKey(name, 'free'),
      () => administration.nearlyNamed(name),
      () => administration.createKey('A', name),
      () => administration.revokeSubscriber(name),
      () => administration.showKey(name),
    ]) {
      const { message } = await act().then(
        () => t.fail('is refused'),
        error => error,
      )
      t.equal(rawControlIn(message), undefined)
      t.notMatch(message, '\n')
      t.ok(message.length < 1_500, `${message.length} characters`)
    }
})

t.test('names of every script are given, with the joiners of Bengali', async t => {
  const { administration } = setUp(t)
  const names = ['Dhaka Tribune', 'প্রথম আলো', 'র\u200d্যাব ক্\u200cষ', 'الجزيرة', 'O’Brien & Søn', '👍🏽']
  for (const name of [...names, 'x'.repeat(100)])
    t.equal((await administration.createKey(name, 'free')).subscriber, name.normalize('NFC'))
})

t.test('the ids of a key and of its subscriber are twelve characters by chance', async t => {
  const { administration } = setUp(t)
  const { id } = await administration.createKey('Schools', 'free')
  t.match(id, /^key_[0-9A-Za-z]{12}$/)
  t.match((await administration.showSubscriber('Schools')).id, /^sub_[0-9A-Za-z]{12}$/)
  t.not((await administration.createKey('Schools', 'free')).id, id)
})

t.test('the last day of use is the latest with a count, as far back as counts and the key go', async t => {
  const { clock, store, administration } = setUp(t)
  const days = ['2025-10-17', '2025-10-18', '2026-10-05', '2026-11-19', '2026-11-20', '2026-11-21']
  const today = days.at(-1)
  await store.ensureSubscriber(sampleSubscriber)
  // By the id, the first day that is looked at. Of `imported` the day of creation is not known, and `ahead` was created by another clock.
  const firstDays = { imported: '2025-10-18', young: '2026-11-20', ahead: '2026-11-21' }
  await store.addKey({ ...sampleKey('imported'), createdAt: 0 })
  await store.addKey({ ...sampleKey('young'), createdAt: clock.now() - utcDayMs })
  await store.addKey({ ...sampleKey('ahead'), createdAt: clock.now() + utcDayMs })
  const usage = async (id: string) => {
    const { lastUsedOn, usedToday } = await administration.showKey(id)
    return [lastUsedOn, usedToday]
  }
  for (const id of Object.keys(firstDays)) t.strictSame(await usage(id), [null, 0])
  for (const day of days)
    for (const [id, first] of Object.entries(firstDays)) {
      await store.raiseUsed(id, day, 1, clock.now() + utcDayMs)
      t.strictSame(await usage(id), day < first ? [null, 0] : [day, day === today ? 1 : 0], `${id} ${day}`)
    }
})

t.test('parts of keys, their usage and subscribers are made few in a turn of the event loop', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const store = storeInMemory(t, clock)
  for (let i = 0; i < 120; i++) {
    await store.ensureSubscriber({ ...sampleSubscriber, id: `sub_${i}`, name: `Name ${i}` })
    await store.addKey({ ...sampleKey(`key_${i}`), subscriberId: `sub_${i}`, createdAt: i })
  }
  const inTurn = { keys: 0, most: 0, counts: 0 }
  const counted = {
    ...store,
    listKeys: async (from?: number, count?: number) => {
      const keys = await store.listKeys(from, count)
      if (inTurn.keys === 0)
        setImmediate(() => {
          inTurn.keys = 0
        })
      inTurn.keys += keys.length
      inTurn.most = Math.max(inTurn.most, inTurn.keys)
      return keys
    },
    usedOn: (id: string, days: readonly string[]) => {
      inTurn.counts += 1
      return store.usedOn(id, days)
    },
  }
  const administration = createAdministration({ store: counted, tiers: { free: 100 }, calendar, clock })
  const [keys, usage] = [
    await administration.partOfKeys(10, 105),
    await administration.partOfUsage(0, 105, 1),
  ]
  t.hasStrict([keys.keys.length, keys.keys[0]?.id, keys.next], [105, 'key_10', 115])
  t.match([usage.keys.length, usage.next], [105, 105])
  t.equal((await administration.partOfKeys(10, 200)).next, null)
  t.equal(inTurn.most, 50)
  t.equal(inTurn.counts, 105 * 2 + 105 + 110 * 2, 'two reads of a key that was never used')
  t.equal((await administration.partOfKeys(20, 100)).next, null)
  t.equal((await administration.listKeys()).length, 120)
  const parts = await Array.fromAsync(administration.usageOfAll(1))
  t.strictSame(
    parts.map(({ length }) => length),
    [50, 50, 20],
  )
  const subscribers = await administration.listSubscribers()
  t.strictSame([subscribers.length, subscribers[7]?.keys], [120, 1])
})

t.test('subscribers are listed in parts of 500 with a turn of the event loop each', async t => {
  const { store, administration } = setUp(t)
  t.strictSame(await Array.fromAsync(administration.subscribersInParts()), [])
  t.strictSame(await Array.fromAsync(administration.usageOfAll(1)), [])
  for (let i = 0; i < 501; i++)
    await store.ensureSubscriber({ ...sampleSubscriber, id: `sub_${i}`, name: `Name ${i}`, createdAt: i })
  let hasTurned = true
  const sizes: number[] = []
  for await (const part of administration.subscribersInParts()) {
    t.ok(hasTurned)
    hasTurned = false
    setImmediate(() => {
      hasTurned = true
    })
    sizes.push(part.length)
  }
  t.strictSame(sizes, [500, 1])
  t.hasStrict((await administration.listSubscribers())[7], { name: 'Name 7', keys: 0 })
  t.equal((await administration.showSubscriber('Name 7')).keys, 0)
})

t.test('usage is of days with a count, and of today by endpoint and class and in cells', async t => {
  const { clock, store, administration, on } = setUp(t)
  const { id } = await administration.createKey('A', 'free')
  t.match(await administration.usage(id, 1), { today: [], cellsLoadedToday: 0 })
  const keepUntil = clock.now() + utcDayMs
  await store.raiseUsed(id, '2026-11-20', 1, keepUntil)
  const counts: [endpoint: string, statusClass: string, count: number][] = [
    ['coords', '2xx', 2],
    ['weather', '2xx', 11],
    ['weather', '4xx', 1],
  ]
  const entries = [...counts, [cellsLoaded, 'other', 3] as const].map(([endpoint, statusClass, count]) => ({
    ...{ keyId: id, day: '2026-11-21', keepUntil, endpoint, statusClass, count },
  }))
  await store.addDetail(entries)
  const facts = { id, subscriber: 'A', tier: 'free', limit: 100 }
  const expected = {
    ...{ ...facts, cellsLoadedToday: 3 },
    today: counts.map(([endpoint, statusClass, count]) => ({ endpoint, statusClass, count })),
    days: [
      { day: '2026-11-21', used: 0 },
      { day: '2026-11-20', used: 1 },
    ],
  }
  // A store gives them in any order.
  const reversed = on({ detailOn: async (...of) => (await store.detailOn(...of)).toReversed() })
  for (const each of [administration, reversed]) t.strictSame(await each.usage(id, 2), expected)
  const days = [{ day: '2026-11-20', used: 1 }]
  t.strictSame(await Array.fromAsync(administration.usageOfAll(2)), [
    [{ ...facts, externalId: null, used: 1, days }],
  ])
})

t.test(
  'a new name is nearly another one with a typing error for each four letters, three at most',
  async t => {
    const { administration } = setUp(t)
    const long = 'Bangladesh Betar Weather Desk'
    for (const name of ['Jamuna', 'Karnafuli', long]) await administration.createKey(name, 'free')
    for (const [typed, found] of [
      ['jamun', 'Jamuna'],
      ['Jamnua', undefined],
      ['Jamuna', undefined],
      ['Karnfuly', 'Karnafuli'],
      ['Bangldesh Btar Wether Desk', long],
      ['Bangldesh Btar Wether Dsk', undefined],
    ] as const)
      t.equal(await administration.nearlyNamed(typed), found, typed)
  },
)

t.test('each change of a key or subscriber is announced to all gateways, after it', async t => {
  const { administration, store } = setUp(t)
  const made = await administration.createKey('A', 'free')
  const { subscriberId } = await administration.showKey(made.id)
  const ours = [{ subscriber: 'B', tier: 'free', externalId: 'ours-1' }]
  const changes: [name: string, act: () => Promise<unknown>, announced: string][] = [
    ['another key', () => administration.createKey('A', 'free'), 'key_'],
    ['keys', () => Array.fromAsync(administration.createKeys([{ subscriber: 'B', tier: 'free' }])), 'key_'],
    ['keys that may exist', () => Array.fromAsync(administration.createKeys(ours)), 'key_'],
    [
      'the same again, which may write lost records',
      () => Array.fromAsync(administration.createKeys(ours)),
      'key_',
    ],
    ['its secret', () => administration.rotateKey(made.id, 0), made.id],
    ['its limit', () => administration.setKey(made.id, { limit: 7 }), made.id],
    ['revoked', () => administration.revokeKey(made.id), made.id],
    ['valid again', () => administration.reinstateKey(made.id), made.id],
    ['no subscriber', () => administration.revokeSubscriber(subscriberId), subscriberId],
    ['a subscriber again', () => administration.reinstateSubscriber(subscriberId), subscriberId],
  ]
  let last = (await store.changeRecordsAfter('keys', 0)).records.at(-1)?.number ?? 0
  t.ok(last > 0, 'the first key was announced')
  for (const [name, act, announced] of changes) {
    await act()
    const { records } = await store.changeRecordsAfter('keys', last)
    t.equal(records.length, 1, name)
    t.ok(records[0]?.text.startsWith(announced), name)
    last = records[0]?.number ?? last
  }
})

t.test('keys are created fifty at a time: shown, then stored, then announced', async t => {
  const { store, on, administration } = setUp(t)
  const requests = (count: number) => Array.from({ length: count }, (_, i) => request(`${count}-${i}`))
  let stored = 0
  for (const [count, sizes] of [
    [50, [50]],
    [51, [50, 1]],
  ] as const) {
    const shown: number[] = []
    const created = administration.createKeys(requests(count), async planned => {
      t.equal(await store.countKeys(), stored)
      stored += planned.length
      shown.push(planned.length)
    })
    t.strictSame(
      (await Array.fromAsync(created)).map(({ length }) => length),
      sizes,
    )
    t.strictSame(shown, sizes)
  }
  let looked = 0
  const counting = on({
    findSubscriber: name => {
      looked += 1
      return store.findSubscriber(name)
    },
  })
  await counting.listKeys()
  t.equal(looked, 1, 'once for all their keys')
  const away = () => Promise.reject(new StoreError('away'))
  const cases: [changes: Partial<Store>, created: string[]][] = [
    [{ addKey: record => (record.externalId === 'b' ? away() : store.addKey(record)) }, ['a', 'c']],
    [{ appendChangeRecord: away }, ['a', 'b', 'c']],
  ]
  for (const [changes, created] of cases) {
    const told: unknown[] = []
    await t.rejects(async () => {
      for await (const part of on(changes).createKeys(['a', 'b', 'c'].map(id => request(id))))
        told.push(...part.map(({ externalId }) => externalId))
    }, StoreError)
    t.strictSame(told, created, 'what was stored is told before the failure')
  }
})

t.test('what is wrong with requests is listed in their order', async t => {
  const { administration } = setUp(t)
  const burst = { rates: { burst: 20 } }
  const known = [request('a'), request('b', { rates: { perSecond: 5 } })]
  await Array.fromAsync(administration.createKeys(known))
  const faults = await administration.faultsOf([
    ...[request('c', { tier: 'gold' }), request('a', burst), request('b', burst), request('c')],
  ])
  t.strictSame(faults, [
    { index: 0, message: 'tier must be one of free, paid, got "gold"' },
    { index: 1, message: 'burst requires per-second' },
    { index: 3, message: 'an earlier request has the external id "c" too' },
  ])
  await administration.revokeSubscriber('A')
  t.match(await administration.faultsOf([request('a'), request('new')]), [
    { index: 1, message: /^subscriber "A" is revoked; `abohawa subscribers revoke --undo sub_\w+` first$/ },
  ])
})

t.test('a key whose subscriber was lost brings its record back, under the name that has its id', async t => {
  const { clock, store, on, administration } = setUp(t)
  const [made] = (await Array.fromAsync(administration.createKeys([request('a')]))).flat()
  const id = await store.findSubscriberId('A')
  const written: unknown[] = []
  const lost = on({
    findSubscriber: async () => undefined,
    ensureSubscriber: subscriber => {
      written.push(subscriber)
      return store.ensureSubscriber(subscriber)
    },
  })
  const again = (subscriber: string) => Array.fromAsync(lost.createKeys([request('a', { subscriber })]))
  t.match(made, { key: /^svc_live_/, existed: false })
  t.hasStrict(await again('A'), [[{ id: made?.id, subscriber: 'A', key: null, existed: true }]])
  t.strictSame(written, [{ id, name: 'A', createdAt: clock.now(), revokedAt: null }])
  await t.rejects(again('B'), {
    message: /^the record of subscriber sub_\w+ .* "B" is not known as its name; /,
  })
})

t.test('wrong tiers, limits and ids are refused, and so is a key for a revoked subscriber', async t => {
  const { store, administration } = setUp(t)
  const { id } = await administration.createKey('A', 'free')
  await administration.revokeSubscriber('A')
  const limit = 'the limit must be an integer from 1 to 999999999999, got "0"'
  const ofKey = /^the id must begin with key_, got an API key; `abohawa keys list` shows the ids$/
  const refused: [act: () => Promise<unknown>, message: string | RegExp][] = [
    [() => administration.setKey(id, { tier: 'gold' }), 'tier must be one of free, paid, got "gold"'],
    [() => administration.createKey('B', 'free', { limit: 0 }), limit],
    [() => administration.showKey(createKey()), ofKey],
    [() => administration.showKey(createKey(testKeyPrefix)), ofKey],
    [() => administration.createKey('A', 'free'), /^subscriber "A" is revoked; /],
  ]
  for (const [act, message] of refused) await t.rejects(act, { name: 'InputError', message })
  t.hasStrict(await store.listKeys(), [{ id, tier: 'free' }])
})

t.test('a key has expired at its instant, and a former one has ended at its', async t => {
  const { administration, clock } = setUp(t)
  const { id } = await administration.createKey('A', 'free', { expires: '2h' })
  await administration.rotateKey(id, 3_600_000)
  for (const [ms, status, isFormerValid] of [
    [3_599_999, 'active', true],
    [1, 'active', false],
    [3_599_999, 'active', false],
    [1, 'expired', false],
  ] as const) {
    clock.advance(ms)
    const { status: shown, formerKeyUntil } = await administration.showKey(id)
    t.strictSame([shown, formerKeyUntil !== null], [status, isFormerValid])
  }
})

t.test('a key that is replaced at once is so on a gateway whose clock is behind', async t => {
  const { administration, store, clock } = setUp(t)
  const { id, key } = await administration.createKey('A', 'free')
  const { formerKeyUntil } = await administration.rotateKey(id, 0)
  t.equal(Date.parse(formerKeyUntil), clock.now())
  const { validUntil } = (await store.findByHash(hashOf(key))) ?? {}
  t.ok(Number(validUntil) <= clock.now() - 300_000)
})

t.test('a key that is replaced does not work beyond its expiry', async t => {
  const { administration, clock } = setUp(t)
  const { id } = await administration.createKey('A', 'free', { expires: '2h' })
  const ends = [3_600_000, 7_200_000, utcDayMs].map(async overlapMs => {
    const { formerKeyUntil } = await administration.rotateKey(id, overlapMs)
    return Date.parse(formerKeyUntil) - clock.now()
  })
  t.strictSame(await Promise.all(ends), [3_600_000, 7_200_000, 7_200_000])
})

t.test('a key that would not be valid gets no new secret, and setting one term keeps the others', async t => {
  const { administration, store, clock } = setUp(t)
  const { id } = await administration.createKey('A', 'free', { limit: 7 })
  const { subscriberId } = await administration.showKey(id)
  t.hasStrict(await administration.setKey(id, { tier: 'paid' }), { tier: 'paid', limit: 7 })
  t.hasStrict(await administration.setKey(id, { expires: '2026-12-31' }), { tier: 'paid', limit: 7 })
  await administration.revokeKey(id)
  const before = (await store.listKeys()).map(({ hash }) => hash)
  await t.rejects(administration.rotateKey(id, 0), { message: /^key \w+ is revoked; / })
  await administration.reinstateKey(id)
  await administration.revokeSubscriber(subscriberId)
  await t.rejects(administration.rotateKey(id, 0), { message: /^subscriber "A" is revoked; / })
  t.hasStrict(await administration.listSubscribers(), [{ name: 'A', status: 'revoked' }])
  await administration.reinstateSubscriber(subscriberId)
  const notShown = () => Promise.reject(new Error('not shown'))
  await t.rejects(administration.rotateKey(id, 0, notShown), { message: 'not shown' })
  clock.set('2027-01-01T00:00:00Z')
  await t.rejects(administration.rotateKey(id, utcDayMs), { message: /^key \w+ has expired; / })
  t.strictSame(
    (await store.listKeys()).map(({ hash }) => hash),
    before,
  )
})

t.test('a rotation whose key the store has lost meanwhile says so', async t => {
  const { administration, on } = setUp(t)
  const { id } = await administration.createKey('A', 'free')
  const lost = on({ replaceHash: async () => false })
  await t.rejects(lost.rotateKey(id, 0), { name: 'NotFoundError', message: `there is no key "${id}"; ` })
})
