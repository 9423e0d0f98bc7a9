// The request for a list of cells.

import t from 'tap'
import { pathFor } from '../../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../../src/weather/cell.ts'

t.test('one question for all cells, in their order, with the variables of every section', t => {
  const grid = createGrid(0.1)
  const path = pathFor(
    [grid.cellOf(23.81, 90.41), grid.cellOf(20, 93)],
    { quarterHours: 54, days: 9 },
    'Asia/Dhaka',
  )
  const { pathname, searchParams } = new URL(path, 'http://provider')
  t.equal(pathname, '/v1/forecast')
  t.equal(searchParams.get('latitude'), '23.8,20')
  t.equal(searchParams.get('longitude'), '90.4,93')
  t.equal(searchParams.get('timezone'), 'Asia/Dhaka')
  t.equal(searchParams.get('past_days'), '1')
  t.equal(searchParams.get('forecast_days'), '9')
  t.equal(searchParams.get('forecast_minutely_15'), '54')
  const variables = ['minutely_15', 'hourly', 'daily'].map(
    section => searchParams.get(section)?.split(',').length,
  )
  t.strictSame(variables, [15, 11, 4], 'thirty variables, which weigh 3.0')
  t.end()
})
