// Local allowances: together they never exceed what was left, however late the messages are.

import fc from 'fast-check'
import t from 'tap'
import { allowanceOf, stepOf } from '../../src/keys/outage.ts'

const limits = fc.integer({ min: 1, max: 1_000_000 })

t.test(
  'a count is published some 64 times on its way to the limit, and at every unit when that is small',
  async t => {
    for (const [limit, step] of [
      [1, 1],
      [64, 1],
      [65, 2],
      [10_000, 157],
    ] as const)
      t.equal(stepOf(limit), step)
  },
)

t.test('all allowances and the unpublished units fit into the rest of the quota', async t => {
  const property = fc.property(
    limits,
    fc.integer({ min: 1, max: 50 }),
    fc.nat(),
    fc.array(fc.nat(), { minLength: 1, maxLength: 50 }),
    (limit, instances, spent, behind) => {
      const used = spent % (limit + 1)
      // Each instance may have missed less than two steps.
      const most = 2 * stepOf(limit) - 1
      const allowances = Array.from({ length: instances }, (_, i) =>
        allowanceOf(limit, Math.max(0, used - ((behind[i % behind.length] ?? 0) % (most + 1))), instances),
      )
      return used + allowances.reduce((sum, allowance) => sum + allowance, 0) <= limit
    },
  )
  t.doesNotThrow(() => fc.assert(property, { numRuns: 1_000 }))
})

t.test(
  'the allowance of a fresh count is nearly all of a large limit, and that of an exhausted one is 0',
  async t => {
    t.equal(allowanceOf(10_000, 0, 1), 10_000 - 2 * 157)
    t.equal(allowanceOf(10_000, 0, 4), Math.floor((10_000 - 2 * 157) / 4))
    t.equal(allowanceOf(10_000, 10_000, 4), 0)
    t.equal(allowanceOf(10_000, 12_000, 4), 0)
    t.equal(allowanceOf(2, 0, 1), 0, 'of two units nothing is certain')
  },
)
