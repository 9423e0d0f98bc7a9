// Without it operators could read that the cache lasts longer than it does.

import t from 'tap'
import { createUncached } from '../../src/cache/failures.ts'
import { firstExpiry as firstExpiryOfEach } from '../../src/cache/inspection.ts'
import { createMemoryTier, keepEntry } from '../../src/cache/tiers.ts'
import { eachInTurns } from '../../src/cache/turns.ts'
import { policyOf, textEntry } from './cache-set-up.ts'

type Given = Parameters<typeof firstExpiryOfEach<string>>

const firstExpiry = (parts: Given[0], keys: readonly string[], ...more: [Given[2], Given[3]?]) =>
  firstExpiryOfEach(parts, act => eachInTurns(keys, act), ...more)

t.test('the entry in demand that expires first decides, and one with nothing cached at once', async t => {
  const memory = createMemoryTier<string>(1_000)
  const uncached = createUncached()
  const parts = { memory, isUncached: uncached.has, policy: policyOf({ staleForMs: 5_000 }) }
  const load = (key: string, fetchedAt: number, purged?: 'soft' | 'hard') =>
    keepEntry(memory, key, textEntry({ fetchedAt }), purged)
  t.equal(await firstExpiry(parts, [], 100), undefined, 'nothing is in demand')

  load('old', 1_000)
  load('older', 500)
  load('oldest', 100)
  const keys = ['old', 'older', 'perhaps in the shared tier']
  t.equal(await firstExpiry(parts, keys, 3_100), 6_500)
  load('older', 3_050)
  t.equal(await firstExpiry(parts, keys, 3_100), 7_000, 'a load moves it')
  t.equal(await firstExpiry(parts, ['oldest'], 9_000), 6_100, 'it may be past')

  uncached.add('purged')
  t.equal(await firstExpiry(parts, keys, 3_100), 7_000, 'one that is not in demand does not count')
  t.equal(await firstExpiry(parts, [...keys, 'purged'], 3_100), 0, 'one in demand with nothing cached')
  t.equal(
    await firstExpiry(parts, [...keys, 'purged'], 3_100, 'cached'),
    7_000,
    'it does not hide the others',
  )
  t.equal(await firstExpiry(parts, ['purged'], 3_100, 'cached'), 0, 'nothing in demand is cached')
  uncached.add('old')
  t.equal(await firstExpiry(parts, keys, 3_100), 7_000, 'what memory has is served')

  load('old', 3_090, 'soft')
  t.equal(await firstExpiry(parts, keys, 3_100), 9_050, 'stale after a soft purge, and served')
  load('old', 3_090, 'hard')
  t.equal(await firstExpiry(parts, keys, 3_100), 3_090, 'not served after a hard one')
})

t.test('keys with nothing cached are looked up again in turn, a bounded number at a time', async t => {
  const uncached = createUncached()
  for (let i = 0; i < 100; i += 1) uncached.add(`key ${i}`)
  uncached.add('not in demand')
  const looked: string[] = []
  const lookUp = async (key: string) => {
    looked.push(key)
    if (key === 'key 0') uncached.delete(key)
    else uncached.add(key)
  }
  const isInDemand = (key: string) => key !== 'not in demand'
  await uncached.check(isInDemand, lookUp)
  t.notOk(uncached.has('not in demand'))
  t.notOk(uncached.has('key 0'), 'another instance has loaded it')
  t.equal(looked.length, 64)
  await uncached.check(isInDemand, lookUp)
  t.equal(new Set(looked).size, 100, 'the second time the others')
})
