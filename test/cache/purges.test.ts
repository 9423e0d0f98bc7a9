// Which entries a purge covers, and the bound of the purge list.

import t from 'tap'
import type { Entry } from '../../src/cache/entry.ts'
import { createPurges } from '../../src/cache/purges.ts'
import { manualClock } from '../support/manual-clock.ts'

const entry = (generation: number): Entry<string> => ({
  value: 'x',
  fetchedAt: 0,
  bytes: 1,
  jitter: 0,
  generation,
  run: null,
})
const setUp = (clock = manualClock()) => createPurges<string>((scope, key) => key.startsWith(scope), clock)

t.test('a purge covers entries in its scope that were loaded before it, and nothing else', t => {
  const purges = setUp()
  t.equal(purges.generation, 0)
  purges.add({ generation: 3, kind: 'soft', scope: 'a' })
  t.equal(purges.generation, 3)
  t.equal(purges.of('a1', entry(2)), 'soft')
  t.equal(purges.of('a1', entry(3)), undefined)
  t.equal(purges.of('b1', entry(0)), undefined)
  t.end()
})

t.test('of several purges the strongest counts, in whatever order they came', t => {
  for (const kinds of [['hard', 'soft', 'soft'] as const, ['soft', 'soft', 'hard'] as const]) {
    const purges = setUp()
    kinds.forEach((kind, i) => {
      purges.add({ generation: i + 1, kind, scope: 'a' })
    })
    t.equal(purges.of('a', entry(0)), 'hard', kinds.join(', '))
  }
  const purges = setUp()
  purges.add({ generation: 1, kind: 'hard', scope: 'a' })
  purges.add({ generation: 2, kind: 'soft', scope: 'a' })
  t.equal(purges.of('a', entry(1)), 'soft', 'loaded between the two')
  t.end()
})

t.test('thousands of purges stay a bounded list, the latest of them in force', t => {
  const purges = setUp()
  for (let i = 1; i <= 5_000; i++) purges.add({ generation: i, kind: 'soft', scope: `k${i};` })
  t.equal(purges.of('k5000;', entry(0)), 'soft')
  t.equal(purges.of('k4001;', entry(0)), 'soft')
  t.equal(purges.of('k4000;', entry(0)), undefined)
  t.end()
})

t.test('a purge ends when no entry from before it can be served, and its number stays', t => {
  const clock = manualClock()
  const purges = setUp(clock)
  purges.add({ generation: 3, kind: 'hard', scope: 'a' })
  clock.advance(60 * 60 * 60_000)
  purges.add({ generation: 4, kind: 'soft', scope: 'a' })
  t.equal(purges.of('a', entry(0)), 'hard', 'entries are served for two days at most')
  clock.advance(13 * 60 * 60_000)
  t.equal(purges.of('a', entry(0)), 'soft')
  clock.advance(60 * 60 * 60_000)
  t.equal(purges.of('a', entry(0)), undefined)
  t.equal(purges.generation, 4)
  t.end()
})
