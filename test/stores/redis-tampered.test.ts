// Without it one damaged record in Redis could fail other keys, or give a key more than its limit.

import fc from 'fast-check'
import type { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { OvertakenError, type Store } from '../../src/stores/store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { testRedis } from '../support/redis-server.ts'
import { redisStores } from '../support/redis-store.ts'
import { until } from '../support/until.ts'
import { costsOneKey } from './damaged-key.ts'
import { spendingStep, spendingWindow } from './spending.ts'
import { aDetail, anEntry, batchOf, heartbeatOf, instanceOn } from './usage-instance.ts'

const open = redisStores(await testRedis(t))

/** Texts that are no valid count: without digits, too long, or accepted by Lua or JavaScript only. */
const noCounts = [
  ...['x', 'nan', 'NaN', 'inf', '-inf', 'Infinity', '-5', '-0', '1e400', '1e3', '0x10', '1.5', ' 5', ''],
  ...['5\u0000', '9'.repeat(16), '9'.repeat(400)],
]

type Put = (raw: Redis, key: string) => Promise<unknown>
/** Puts a record of another type in the place of one. */
const otherTypes: Record<string, Put> = {
  'a list': (raw, key) => raw.rpush(key, 'x', 'y'),
  'a set': (raw, key) => raw.sadd(key, 'x'),
  'a sorted set': (raw, key) => raw.zadd(key, 1, 'x'),
  'a stream': (raw, key) => raw.xadd(key, '*', 'used', '5'),
  'a text': (raw, key) => raw.set(key, 'x'),
  'a hash': (raw, key) => raw.hset(key, 'used', '5'),
}
/** A row for each type but the record's own. */
const ofOtherTypes = <Row>(own: string, row: (what: string, put: Put) => Row): Row[] =>
  Object.entries(otherTypes)
    .filter(([what]) => what !== own)
    .map(([what, put]) => row(what, (raw, key) => raw.del(key).then(() => put(raw, key))))

const { day } = anEntry
const keyIds = ['first', 'bad', 'last']
const hashesUnder = (prefix: string) => ({
  live: `${prefix}quota:{q0}:${day}`,
  sums: `${prefix}used:{q0}:${day.slice(0, 7)}`,
})

/** Two instances that were granted 30 and 20 units of three keys. */
const counted = async (t: Test) => {
  const scene = await open(t)
  const [one, two] = [instanceOn(scene.store, 'one'), instanceOn(scene.store, 'two')]
  const batch = (units: number) => keyIds.map(keyId => ({ keyId, units, limit: 100, step: 2 }))
  await one(...batch(30))
  await two(...batch(20))
  return { ...scene, one, two, batch, hashes: { raw: scene.raw, ...hashesUnder(scene.prefix) } }
}

type Hashes = ReturnType<typeof hashesUnder> & { readonly raw: Redis }
type Damage = {
  readonly what: string
  readonly put: (hashes: Hashes) => Promise<unknown>
  /** The count as the next batch finds it. */
  readonly before?: number
  /** Units that the instance reports beside those that it is granted. */
  readonly reported?: number
  /** Whether the other keys of the hash are damaged too. */
  readonly isOfAll?: boolean
  readonly refusals?: number
}
const putIn =
  (name: 'live' | 'sums') =>
  (text: string) =>
  ({ raw, [name]: hash }: Hashes) =>
    raw.hset(hash, 'bad', text)
const [count, sum] = [putIn('live'), putIn('sums')]
const manyInstances = Array.from({ length: 2_500 }, (_, i) => ` f${i}:1:0`).join('')
const damages: Damage[] = [
  ...noCounts.flatMap((text): Damage[] => [
    { what: `sum ${text}`, put: count(`${text} one:1:30 two:1:20`) },
    { what: `units ${text}`, put: count(`50 one:1:${text} two:1:20`) },
    { what: `batch ${text}`, put: count(`50 one:${text}:30 two:1:20`) },
  ]),
  ...[
    ...['', ' ', 'x', '50,', '\u0000', 'one:1:30 two:1:20', '50 one:1:30:1', '50 one'],
    '7 one:1:30 two:1:20',
  ].map((text): Damage => ({ what: `count ${text}`, put: count(text) })),
  { what: 'a batch that no instance reaches', put: count('50 one:999999999999999:30 two:1:20') },
  { what: 'megabytes', put: count('9'.repeat(4_000_000)) },
  { what: 'no count', put: ({ raw, live }) => raw.hdel(live, 'bad'), refusals: 0 },
  { what: 'many instances, folded', put: count(`50 one:1:30 two:1:20${manyInstances}`), refusals: 0 },
  { what: 'no sums', put: ({ raw, sums }) => raw.hdel(sums, 'bad'), refusals: 0 },
  { what: 'sums that are none', put: sum('21:x'), refusals: 0 },
  { what: 'sums of megabytes', put: sum('21:50 '.repeat(400_000)), refusals: 0 },
  {
    what: 'neither count nor sums: what the instance admitted is known',
    put: hashes => Promise.all([count('x')(hashes), sum('21:x')(hashes)]),
    before: 0,
    reported: 30,
  },
  ...ofOtherTypes('a hash', (what, put): Damage[] => [
    { what: `counts as ${what}`, put: ({ raw, live }) => put(raw, live), isOfAll: true },
    { what: `sums as ${what}`, put: ({ raw, sums }) => put(raw, sums), isOfAll: true },
  ]).flat(),
]

for (const { what, put, before = 50, reported = 0, isOfAll = false, refusals = 1 } of damages)
  t.test(`a count: ${what.slice(0, 40)}`, async t => {
    const { store, one, two, batch, hashes, raw, refused } = await counted(t)
    const { live, sums } = hashes
    await put(hashes)
    const used = before + reported + 1
    const good = { granted: 1, used: 51, before: 50 }
    t.strictSame(await one(...batch(1)), [good, { granted: 1, used, before }, good])
    t.equal(refused.length, refusals)
    t.match(refused, refusals === 0 ? [] : [{ record: 'usage', name: isOfAll ? /:\{q0\}:/ : 'bad' }])
    // The other one, whose units are in the count or come with its report.
    const [, of] = await two(...batch(1))
    t.equal(of?.used, 52)
    const rest = [...(await one(...batch(40))), ...(await two(...batch(40)))]
    t.equal((rest[1]?.granted ?? 0) + (rest[4]?.granted ?? 0), 48, 'together at most the limit')
    t.strictSame(await store.usedOn('bad', [day]), [100])
    t.match(await raw.hget(live, 'bad'), /^100 .{0,80}$/, 'it is whole again')
    t.ok((await raw.pttl(live)) > 0 && (await raw.pttl(sums)) > 0, 'and expires')
    t.equal(refused.length, refusals, 'reported once')
  })

t.test('sums that can’t be read are none in reports, and an import raises whatever is there', async t => {
  const { store, refused, raw, hashes } = await counted(t)
  const { live, sums } = hashes
  const noSums = noCounts.filter(text => text !== '').map(text => `20:3 21:${text}`)
  for (const text of [...noSums, 'x'.repeat(1_000)]) {
    await raw.hset(sums, 'bad', text)
    refused.length = 0
    t.strictSame(await store.usedOn('bad', [day, '2126-11-20']), [0, 0], text.slice(0, 20))
    t.hasStrict(refused, [{ record: 'usage' }])
  }
  for (const { what, put } of damages) {
    await raw.del(live, sums)
    await put(hashes)
    await store.raiseUsed('bad', day, 60, anEntry.keepUntil)
    const [taken] = await instanceOn(store, 'new')({ keyId: 'bad', limit: 100 })
    t.strictSame([taken?.granted, taken?.used, await store.usedOn('bad', [day])], [1, 61, [61]], what)
  }
})

t.test('a batch behind a foreign sequence is refused with it, and the next one is counted', async t => {
  const { store, hashes } = await counted(t)
  await count('50 one:123456:30 two:1:20')(hashes)
  const entry = { ...anEntry, keyId: 'bad', limit: 100, admitted: 30, confirmed: 30 }
  const take = (sequence: number) => store.commit(batchOf('one', sequence, [entry]))
  await t.rejects(take(7), { name: 'OvertakenError', by: 123_456 })
  t.strictSame(await take(123_457), [{ granted: 1, used: 51, before: 50 }])
})

t.test('whatever a count holds, others are counted exactly and it stays within its limit', async t => {
  const { store, prefix, raw } = await open(t)
  const { live, sums } = hashesUnder(prefix)
  const numeric = fc.oneof(fc.nat(120).map(String), fc.constantFrom(...noCounts), fc.double().map(String))
  const part = fc.oneof(
    fc.tuple(fc.constantFrom('one', 'two', '-', 'three', ''), numeric, numeric).map(parts => parts.join(':')),
    numeric,
    fc.string(),
  )
  const value = fc
    .tuple(numeric, fc.array(part, { maxLength: 4 }))
    .map(([used, parts]) => [used, ...parts].join(' '))
  const damage = fc.record({ count: fc.option(value), sum: fc.option(numeric), isDropped: fc.boolean() })
  const isWhole = (number: number) => Number.isSafeInteger(number) && number >= 0
  await fc.assert(
    fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 4 }), async rounds => {
      await raw.del(live, sums)
      const commits = [instanceOn(store, 'one'), instanceOn(store, 'two')]
      for (const [i, { count, sum, isDropped }] of rounds.entries()) {
        if (count !== null) await raw.hset(live, 'bad', count)
        if (isDropped) await raw.hdel(live, 'bad')
        if (sum !== null) await raw.hset(sums, 'bad', `21:${sum}`)
        const batch = keyIds.map(keyId => ({ keyId, units: 7, limit: 60 }))
        const results = await commits[i % 2]?.(...batch).catch((error: unknown) => {
          // A foreign sequence, after which the instance continues.
          if (!(error instanceof OvertakenError)) throw error
        })
        if (!results) return
        const [first, bad, last] = results
        if (first?.used !== 7 * (i + 1) || last?.used !== first.used)
          throw new Error(`others have ${first?.used}`)
        if (!bad || ![bad.granted, bad.used, bad.before].every(isWhole)) throw new Error(JSON.stringify(bad))
        if (bad.granted > 7 || (bad.granted > 0 && bad.used > 60)) throw new Error(JSON.stringify(bad))
      }
      if (!(await store.usedOn('bad', [day])).every(isWhole)) throw new Error('what was used is no count')
    }),
    { seed: 20_261_121, numRuns: 150 },
  )
})

type OfKey = [what: string, put: (raw: Redis, prefix: string) => unknown, fault: RegExp]
const field =
  (name: string, text: string, record = 'key:bad') =>
  (raw: Redis, prefix: string) =>
    raw.hset(`${prefix}${record}`, name, text)
const without =
  (...[record, name]: [record: string, name?: string]) =>
  (raw: Redis, prefix: string) =>
    name === undefined ? raw.del(`${prefix}${record}`) : raw.hdel(`${prefix}${record}`, name)
const everyOther = (what: string, record: string, own: string, fault: RegExp) =>
  ofOtherTypes(
    own,
    (type, put): OfKey => [`${what} as ${type}`, (raw, prefix) => put(raw, prefix + record), fault],
  )
const pointer = 'key-of:hash-of-bad'
const noLimit = /limit must be empty or an integer from 1, got ".+"/
const noInstant = /revokedAt must be empty or an instant in ms since 1970, got ".+"/
const [missing, ofAnotherType] = [/it is missing/, /it has another Redis type/]
const ofKeys: OfKey[] = [
  ...['abc', '-5', '0', '1.5', '1e3', '9'.repeat(400)].map(
    (text): OfKey => [`limit ${text}`, field('limit', text), noLimit],
  ),
  ...['x', '-1', '8640000000000001'].map(
    (text): OfKey => [`revokedAt ${text}`, field('revokedAt', text), noInstant],
  ),
  ['no tier', without('key:bad', 'tier'), /tier must be 1 to 400 characters, got ""/],
  ['a long tier', field('tier', 'x'.repeat(401)), /tier must be .*, got "x{60}…"/],
  [
    'restrictions of tomorrow',
    field('restrictions', '{"referers":["a"]}'),
    /restrictions must be empty or JSON/,
  ],
  [
    'rates that are none',
    field('rates', '{"perSecond":0,"burst":null,"perMinute":null}'),
    /rates must be empty or JSON/,
  ],
  ['a missing record', without('key:bad'), missing],
  ...everyOther('a key', 'key:bad', 'a hash', ofAnotherType),
  ...everyOther('a pointer', pointer, 'a text', ofAnotherType),
]
const ofSubscribers: OfKey[] = [
  ['a missing subscriber', without('subscriber:sub_a'), missing],
  ['a revocation of it', field('revokedAt', 'soon', 'subscriber:sub_a'), /revokedAt must be .*, got "soon"/],
  ...everyOther('a subscriber', 'subscriber:sub_a', 'a hash', ofAnotherType),
]

for (const [record, rows] of Object.entries({ key: ofKeys, subscriber: ofSubscribers }))
  for (const [what, put, fault] of rows)
    t.test(`a key: ${what.slice(0, 40)}`, async t => {
      const opened = await open(t)
      await costsOneKey(t, opened, () => put(opened.raw, opened.prefix), { record, fault })
    })

t.test('damaged dates of a key are 1970, and a former hash without an end has ended', async t => {
  const { store, prefix, raw } = await open(t)
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey(sampleKey('key_1'))
  await raw.hset(`${prefix}key:key_1`, 'createdAt', 'x', 'former:a', 'x', 'former:b', '-1', 'former:', '')
  t.strictSame(await store.findKey('key_1'), { ...sampleKey('key_1'), createdAt: 0 })
  await raw.set(`${prefix}key-of:a`, 'key_1')
  t.equal(await store.findByHash('a'), undefined)
  await raw.hset(`${prefix}subscriber:sub_a`, 'createdAt', '99999999999999999')
  t.strictSame(await store.findSubscriber('Padma'), { ...sampleSubscriber, createdAt: 0 })
})

t.test('responses are still counted beside a count that is none', async t => {
  const { store, prefix, refused, raw } = await open(t)
  const key = `${prefix}usage-detail:{q0}:${day}`
  const entry = { ...aDetail, count: 2 }
  const whole = [{ endpoint: 'weather', statusClass: '2xx', count: 2 }]
  for (const text of noCounts) {
    await raw.del(key)
    await raw.hset(key, 'key_1', `${text} 2xx weather`)
    await store.addDetail([entry, { ...entry, keyId: 'key_2' }])
    t.strictSame([await store.detailOn('key_1', day), await store.detailOn('key_2', day)], [whole, whole])
    t.ok((await raw.pttl(key)) > 0)
  }
  await raw.hset(key, 'key_1', '2 2xx weather,1 2xx <b>,x 9xx weather,1 weather,,1')
  t.strictSame(await store.detailOn('key_1', day), whole)
  t.ok(refused.length > 0 && refused.every(({ record }) => record === 'usage_detail'))
})

const now = Date.now()
const spend = spendingStep({
  ...{ provider: 'acc1', wanted: 3_000, now },
  windows: [spendingWindow({ name: 'day:1', limit: 40_000, keepUntil: now + 60_000 })],
})
const charge = (store: Store) => store.spend(spend)

t.test('what is no figure of a budget is none, and costs no other one', async t => {
  const { store, prefix, raw } = await open(t)
  const claiming = { ...spend, wanted: 0, claims: [{ consumer: 'key_1', wanted: 3_000 }] }
  for (const text of noCounts) {
    await raw.hset(`${prefix}spending:{acc1}:closure`, { until: text, at: text, reason: '', reopened: text })
    await raw.hset(`${prefix}spending:{acc1}:day:1`, { charged: text, refunded: text, ':key_1': text })
    t.match(await store.spend(claiming), { granted: 3_000, closure: null, reopenedAt: 0 }, text.slice(0, 20))
    await raw.hset(`${prefix}spending:{acc1}:closure`, { until: text, reopened: text })
    t.match(await store.reopen('acc1', now), { closure: null }, text.slice(0, 20))
    await raw.del(`${prefix}spending:{acc1}:closure`)
  }
})

const beat = (store: Store) => store.heartbeat(heartbeatOf('one', { requested: ['a'] }))
const shared: [name: string, ownType: string, act: (store: Store) => Promise<unknown>][] = [
  ['spending:{acc1}:day:1', 'a hash', charge],
  ['spending:{acc1}:closure', 'a hash', charge],
  ['flight:{cell}', 'a text', store => store.acquireLease('cell', 'one', 60_000)],
  ['instances', 'a sorted set', beat],
  ['settings', 'a sorted set', beat],
  ['wanted:q', 'a sorted set', beat],
  ['notices:keys', 'a sorted set', store => store.changeRecordsAfter('keys', 0)],
  [`usage-detail:{q0}:${day}`, 'a hash', store => store.addDetail([{ ...aDetail, count: 2 }])],
]
for (const [name, ownType, act] of shared)
  t.test(`${name} of another type is an error of its step, and of no other`, async t => {
    const { store, prefix, raw } = await open(t)
    for (const put of ofOtherTypes(ownType, (_, put) => put)) {
      await put(raw, prefix + name)
      const message = `WRONGTYPE: ${prefix}${name.split('}')[0]}`
      await t.rejects(act(store), { name: 'StoreError', message })
      for (const [other, , step] of shared) if (other !== name && step !== act) await step(store)
    }
    await raw.del(prefix + name)
    await act(store)
  })

/** A store that subscribes, with the messages it received and the refusals it reported. */
const listening = async (t: Test) => {
  const { store, prefix, refused, raw } = await open(t)
  const messages: unknown[] = []
  store.onUsage(each => messages.push(each))
  const publish = (text: string) => raw.publish(`${prefix}used`, text)
  await until('it listens', async () => (await publish('probe 2126-11-21 1')) === 1 && messages.length > 0)
  const received = (marker: number) =>
    until('the marker has arrived', async () => {
      await publish(`marker 2126-11-21 ${marker}`)
      return messages.some(each => Object(each).used === marker)
    })
  return { prefix, refused, messages, publish, received }
}

t.test('token buckets that nobody can have written are full', async t => {
  const { store, raw, prefix } = await open(t)
  const key = `${prefix}tokens:{q0}:key_1`
  const buckets = [{ name: 'second', capacity: 10, perMs: 1e-6, spent: 0 }]
  const runs = [{ unitsEach: 1, requests: 99 }]
  const commit = instanceOn(store, 'one')
  const take = async () => (await commit({ runs, buckets }))[0]?.tokens?.taken
  for (const held of ['x', '-5', 'nan', 'inf', '1e9', '0x10', '1.2.3', '', '9'.repeat(400), '99'])
    for (const at of [String(Date.now() - 1), 'x', '', '9'.repeat(29)]) {
      await raw.hset(key, { second: held, at })
      t.equal(await take(), 10, `${held} at ${at}`)
      t.equal(await take(), 0)
    }
  for (const [what, put] of Object.entries(otherTypes)) {
    await raw.del(key)
    await put(raw, key)
    t.equal(await take(), 10, what)
    t.equal(await take(), 0)
    t.ok((await raw.pttl(key)) > 0, 'they expire')
  }
})

t.test('messages that no gateway sends are reported and ignored', async t => {
  const { prefix, refused, messages, publish, received } = await listening(t)
  const longest = `${'k'.repeat(200)} 2126-11-21 ${'9'.repeat(15)}`
  await publish(longest)
  await received(2)
  t.ok(messages.some(each => Object(each).keyId === 'k'.repeat(200)))
  messages.length = 0
  const texts = [
    ...['', 'x', 'key_1', 'key_1 2126-11-21', `key_1 2126-11-21 ${'9'.repeat(400)}`, 'key_1 yesterday 5'],
    ...['x', '-5', '1e9', '1.5', '5 6'].map(count => `key_1 2126-11-21 ${count}`),
    ...[`${'x'.repeat(1_000)} 2126-11-21 5`, '\u001b[31m<b>lost</b>'],
  ]
  for (const text of texts) await publish(text)
  await received(3)
  const others = messages.filter(each => Object(each).keyId !== 'marker')
  t.strictSame(others, [], 'not even that something was missed')
  t.equal(refused.length, texts.length)
  t.ok(refused.every(each => each.record === 'message' && each.name.startsWith(prefix)))
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no such character is to be there
  t.ok(refused.every(({ fault }) => fault.length < 120 && !/[\u0000-\u001f]/.test(fault)))
})
