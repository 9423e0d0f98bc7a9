// The settings that no other beats.

import t from 'tap'
import { paretoOptimal } from '../../../src/load/report/run-figures.ts'

t.test('no other beats them', async t => {
  t.strictSame(
    [
      ...paretoOptimal([
        [0.83, -34_068],
        [0.897, -18_660],
        [0.911, -14_532],
      ]),
    ],
    [2],
  )
  t.strictSame(
    [
      ...paretoOptimal([
        [0.8, -10],
        [0.9, -20],
        [0.7, -15],
      ]),
    ],
    [0, 1],
  )
  t.strictSame(
    [
      ...paretoOptimal([
        [1, 1],
        [1, 1],
      ]),
    ],
    [0, 1],
    'equal ones',
  )
  t.strictSame([...paretoOptimal([])], [])
})
