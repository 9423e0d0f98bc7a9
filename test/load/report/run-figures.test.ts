// The settings that no other beats.

import t from 'tap'
import { paretoOptimal } from '../../../src/load/report/run-figures.ts'

const optimal = (...merits: number[][]): number[] => [...paretoOptimal(merits)]

t.test('no other beats them', async t => {
  t.strictSame(optimal([0.83, -34_068], [0.897, -18_660], [0.911, -14_532]), [2])
  t.strictSame(optimal([0.8, -10], [0.9, -20], [0.7, -15]), [0, 1])
  t.strictSame(optimal([1, 1], [1, 1]), [0, 1], 'equal ones')
  t.strictSame(optimal(), [])
})
