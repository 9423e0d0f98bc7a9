// Which entries a purge covers, the bound of the list, and what counts where purges may be unknown.

import t from 'tap'
import type { Entry } from '../../src/cache/freshness.ts'
import { createPurges } from '../../src/cache/purges.ts'
import type { CellId } from '../../src/weather/cell.ts'

const entry = (generation: number): Entry<string> => ({
  value: 'x',
  fetchedAt: 0,
  bytes: 1,
  jitter: 0,
  generation,
  run: null,
})
const setUp = () => createPurges()
const cell = (id: string) => ({ cell: id as CellId })

t.test('a purge covers entries in its scope that were loaded before it, and nothing else', t => {
  const purges = setUp()
  t.equal(purges.generation, 0)
  purges.add({ generation: 3, kind: 'soft', scope: cell('a') })
  t.equal(purges.generation, 3)
  t.equal(purges.of('a', entry(2)), 'soft')
  t.equal(purges.of('a', entry(3)), undefined)
  t.equal(purges.of('b', entry(0)), undefined)
  t.end()
})

t.test('of several purges the strongest counts, in whatever order they came', t => {
  for (const kinds of [['hard', 'soft', 'soft'] as const, ['soft', 'soft', 'hard'] as const]) {
    const purges = setUp()
    kinds.forEach((kind, i) => {
      purges.add({ generation: i + 1, kind, scope: cell('a') })
    })
    t.equal(purges.of('a', entry(0)), 'hard', kinds.join(', '))
  }
  const purges = setUp()
  purges.add({ generation: 1, kind: 'hard', scope: cell('a') })
  purges.add({ generation: 2, kind: 'soft', scope: cell('a') })
  t.equal(purges.of('a', entry(1)), 'soft', 'loaded between the two')
  t.end()
})

t.test('beyond a thousand purges the oldest are forgotten, and entries from before those are stale', t => {
  const purges = setUp()
  for (let i = 1; i <= 1_000; i++) purges.add({ generation: i, kind: 'hard', scope: cell(`k${i};`) })
  t.equal(purges.of('other', entry(0)), undefined)
  t.equal(purges.of('k1;', entry(0)), 'hard')
  purges.add({ generation: 1_001, kind: 'soft', scope: cell('k1001;') })
  t.equal(purges.of('k1;', entry(0)), 'soft')
  t.equal(purges.of('other', entry(0)), 'soft', 'which keys it covered is forgotten too')
  t.equal(purges.of('k2;', entry(0)), 'hard')
  t.equal(purges.of('other', entry(1)), undefined)
  t.end()
})

t.test('where purges were missed, entries from before the next known one are stale', t => {
  const purges = setUp()
  purges.add({ generation: 3, kind: 'hard', scope: cell('a') })
  purges.add({ generation: 9, kind: 'soft', scope: cell('b') })
  purges.miss(9)
  t.equal(purges.of('c', entry(8)), 'soft')
  t.equal(purges.of('c', entry(9)), undefined)
  t.equal(purges.of('a', entry(2)), 'hard')
  t.end()
})

t.test('a number that another instance knows first is newer than every purge that is known here', t => {
  const purges = setUp()
  purges.add({ generation: 3, kind: 'soft', scope: cell('a') })
  t.equal(purges.of('a', entry(4)), undefined)
  purges.add({ generation: 4, kind: 'soft', scope: cell('a') })
  t.equal(purges.of('a', entry(4)), undefined)
  purges.reach(3)
  t.equal(purges.generation, 4)
  t.end()
})

t.test('a log that was lost begins again at any number', t => {
  const purges = setUp()
  purges.add({ generation: 100, kind: 'hard', scope: cell('a') })
  purges.restart()
  t.equal(purges.generation, 0)
  purges.add({ generation: 40, kind: 'soft', scope: { all: true } })
  t.equal(purges.generation, 40)
  t.equal(purges.of('a', entry(39)), 'soft')
  t.equal(purges.of('a', entry(40)), undefined)
  t.end()
})
