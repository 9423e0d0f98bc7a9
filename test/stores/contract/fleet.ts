// What gateways tell each other through every store: cached bytes, leases, heartbeats and changes.

import type { ChangeTopic } from '../../../src/stores/store.ts'
import { until } from '../../support/until.ts'
import { heartbeatOf } from '../usage-instance.ts'
import type { ContractTest } from './contract-test.ts'

export const fleetContract = (test: ContractTest): void => {
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
}
