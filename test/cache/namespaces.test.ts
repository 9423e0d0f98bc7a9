// Without it an older entry of one upstream could replace a newer one of another.

import t from 'tap'
import type { Entry, Freshness } from '../../src/cache/freshness.ts'
import { cacheNamespacesIn, joinTiers } from '../../src/cache/namespaces.ts'
import { loadConfig } from '../../src/config/load.ts'
import { textEntry } from './cache-set-up.ts'

const entry = (upstream: string, fetchedAt: number): Entry<string> =>
  textEntry({ value: `${upstream}@${fetchedAt}`, fetchedAt, upstream })

const setUp = (names: readonly [string, ...string[]]) => {
  const bytes = new Map<string, Entry<string>>()
  const states = new Map<string, Freshness>()
  const written: string[] = []
  let reads = 0
  const tier = {
    name: 'redis',
    get: async (key: string, isWanted: (found: Entry<string>) => boolean = () => true) => {
      reads += 1
      const found = bytes.get(key)
      return found && isWanted(found) ? found : undefined
    },
    set: async (key: string, _: Entry<string>, holder?: string) => {
      written.push(`${key} ${holder ?? 'without a lease'}`)
      return true
    },
  }
  const [first, ...others] = names.map(name => ({ upstream: name, namespace: `of-${name}`, tier }))
  if (!first) throw new Error('no upstream')
  const shared = joinTiers([first, ...others], (_, { value }) => states.get(value as string) ?? 'fresh')
  return {
    ...{ bytes, states, written, shared, tier },
    reads: () => reads,
  }
}

t.test('a namespace names its upstream where there are several', async t => {
  const namesWith = (env: Readonly<Record<string, string>>) =>
    cacheNamespacesIn(loadConfig({ files: [], env })).map(({ upstream }) => upstream)
  t.strictSame(namesWith({}), [undefined])
  const fallbacks = JSON.stringify([{ baseUrl: 'http://second.test', name: 'second' }])
  t.strictSame(namesWith({ ABOHAWA_PROVIDER__FALLBACKS: fallbacks }), ['primary', 'second'])
})

t.test('the tier of one upstream is that tier', async t => {
  const { shared, tier } = setUp(['a'])
  t.equal(shared, tier)
})

t.test('a read takes the newest entry that can be served, and then asks whether it is wanted', async t => {
  const { bytes, states, shared, reads } = setUp(['a', 'b', 'c'])
  const found = async () => (await shared.get('of-a:x'))?.value
  t.equal(await found(), undefined)
  t.equal(reads(), 3)
  bytes.set('of-a:x', entry('a', 10))
  t.equal(await found(), 'a@10')
  bytes.set('of-b:x', entry('b', 20))
  bytes.set('of-b:y', entry('b', 99))
  t.equal(await found(), 'b@20')
  states.set('b@20', 'stale')
  t.equal(await found(), 'b@20', 'never back to an older one')
  const isFresh = ({ fetchedAt }: { fetchedAt: number }) => fetchedAt < 15
  t.equal(await shared.get('of-a:x', isFresh), undefined, 'an older one ends no refresh of a newer one')
  states.set('b@20', 'expired')
  t.equal(await found(), 'a@10')
  states.set('a@10', 'expired')
  t.equal(await found(), 'b@20')
  bytes.set('of-c:x', entry('c', 5))
  t.equal(await found(), 'c@5')
})

t.test('the number of the last purge says what is newer, where clocks of gateways differ', async t => {
  const { bytes, shared } = setUp(['a', 'b'])
  bytes.set('of-a:x', entry('a', 90))
  bytes.set('of-b:x', { ...entry('b', 30), generation: 1 })
  t.equal((await shared.get('of-a:x'))?.value, 'b@30')
})

t.test('a write goes to the namespace of its upstream, and leaves what is newer', async t => {
  const { bytes, shared, written } = setUp(['a', 'b'])
  t.equal(await shared.set('of-a:x', entry('a', 1), 'holder'), true, 'under the lease of the cell')
  t.equal(await shared.set('of-a:x', entry('b', 1), 'holder'), true)
  bytes.set('of-b:x', entry('b', 1))
  t.equal(await shared.set('of-a:x', entry('b', 1), 'holder'), true, 'one of the same age')
  t.equal(await shared.set('of-a:x', entry('b', 2), 'holder'), true)
  const expected = ['of-a:x holder', ...Array(3).fill('of-b:x without a lease')]
  t.strictSame(written, expected)
  bytes.set('of-b:x', entry('b', 3))
  t.equal(await shared.set('of-a:x', entry('b', 2), 'holder'), false)
  t.strictSame(written, expected)
})
