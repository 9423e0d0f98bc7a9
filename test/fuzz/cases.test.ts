// Cases depend only on the seed, the target and their number: they are the same tomorrow and on another machine.

import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { createRandom } from '../../fuzz/random.ts'
import { targets } from '../../fuzz/targets/all.ts'

const numbers = Array.from({ length: 300 }, (_, i) => i)

for (const target of targets) {
  const caseOf = (seed: number, number: number) =>
    target.generate(createRandom(seed, target.name, number), number)
  const forwards = numbers.map(number => caseOf(7, number))

  t.test(`${target.name}: a case is the same whenever it is made, and another with another seed`, async t => {
    const backwards = numbers.toReversed().map(number => caseOf(7, number))
    t.ok(isDeepStrictEqual(forwards, backwards.toReversed()))
    const alike = numbers.filter(number => isDeepStrictEqual(caseOf(8, number), forwards[number]))
    t.ok(alike.length < numbers.length / 10, `${alike.length} of ${numbers.length} are alike`)
  })

  t.test(`${target.name}: cases are of many kinds and get smaller`, async t => {
    t.ok(new Set(forwards.map(one => target.shapeOf(one))).size >= 6)
    for (const one of forwards)
      for (const smaller of target.smaller(one))
        if (isDeepStrictEqual(smaller, one)) t.fail(`nothing is smaller about ${target.print(smaller)}`)
  })
}

t.test('numbers of a stream are spread evenly', async t => {
  const random = createRandom('spread')
  const counts = new Map<number, number>()
  for (let i = 0; i < 60_000; i++) {
    const number = random.between(1, 6)
    counts.set(number, (counts.get(number) ?? 0) + 1)
  }
  t.strictSame([...counts.keys()].toSorted(), [1, 2, 3, 4, 5, 6])
  for (const count of counts.values()) t.ok(Math.abs(count - 10_000) < 500, `${count}`)
})
