// What a damaged record of a key, or of its subscriber, costs in any store: one report, and that key until it is stored again.

import type { Test } from 'tap'
import type { RefusedRecord } from '../../src/stores/records.ts'
import type { Store } from '../../src/stores/store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'

/** @param damage damages the key `bad` with the external id `ours`, or its subscriber `sub_a` */
export const costsOneKey = async (
  t: Test,
  { store, refused }: { store: Store; refused: RefusedRecord[] },
  damage: () => unknown,
  report: object,
): Promise<void> => {
  const meghna = { ...sampleSubscriber, id: 'sub_b', name: 'Meghna' }
  const good = { ...sampleKey('good'), subscriberId: 'sub_b' }
  const bad = { ...sampleKey('bad'), externalId: 'ours' }
  for (const subscriber of [sampleSubscriber, meghna]) await store.ensureSubscriber(subscriber)
  for (const key of [good, bad]) await store.addKey(key)
  await damage()
  t.equal(await store.findByHash(bad.hash), undefined)
  t.match(refused, [report], 'one report')
  t.hasStrict(await store.findByHash(good.hash), { key: good, subscriber: meghna })
  t.ok((await store.listKeys()).some(({ id }) => id === 'good'))
  t.hasStrict((await store.listSubscribers()).at(-1), meghna)
  const another = await store.ensureSubscriber({ ...sampleSubscriber, id: 'sub_c' })
  t.hasStrict(another, { id: 'sub_a' }, 'a name keeps its id')
  await store.addKey(bad)
  t.hasStrict(await store.findByHash(bad.hash), { key: bad, subscriber: sampleSubscriber }, 'stored again')
  t.hasStrict(await store.findByHash('former-of-bad'), { key: bad })
  t.hasStrict(await store.findByExternalId('ours'), bad)
}
