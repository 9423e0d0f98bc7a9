// The weight of requests, as the provider counts it.

import t from 'tap'
import { hourMs } from '../../../src/common/calendar.ts'
import { weightOf } from '../../../src/provider/open-meteo/limits.ts'
import { weightOfPoint } from '../../../src/provider/open-meteo/request.ts'
import { horizonFor } from '../../../src/weather/horizon.ts'

t.test('a point weighs by its variables and its days, and never less than 1', t => {
  const weights: [variables: number, days: number, weight: number][] = [
    [1, 1, 1],
    [10, 14, 1],
    [15 + 4, 7, 1.9],
    [15 + 15 + 4, 7, 3.4],
    [15 + 15 + 4, 14, 3.4],
    [15 + 15 + 4, 16, 3.89],
    [10, 28, 2],
    [1, 92 + 16, 1],
  ]
  for (const [variables, days, weight] of weights)
    t.equal(Number(weightOf({ variables, days }).toFixed(2)), weight, `${variables} variables, ${days} days`)
  t.equal(weightOf({ variables: 10, days: 7, models: 3 }), 3, 'every model counts them again')
  t.end()
})

t.test('a point of the gateway’s own request weighs 3, and more only with more than two weeks of days', t => {
  t.equal(weightOfPoint(horizonFor(13 * hourMs, 48)), 3)
  t.equal(weightOfPoint({ quarterHours: 400, days: 13 }), 3)
  t.equal(
    weightOfPoint({ quarterHours: 54, days: 14 }).toFixed(3),
    '3.214',
    'the day that is past counts too',
  )
  t.end()
})
