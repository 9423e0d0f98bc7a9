// Without it a list whose weather has ended for every place could be answered with 200.

import t from 'tap'
import type { CellResult } from '../../src/api/answer.ts'
import { createJoinedWeather, type Failed, type ListedPlace } from '../../src/api/joined-weather.ts'
import { pointPart } from '../../src/api/places.ts'
import { createDocUrl, notFound } from '../../src/api/problem.ts'
import type { RenderedWeather } from '../../src/api/rendered-weather.ts'
import { sentences } from '../../src/api/sentences.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { createGrid } from '../../src/weather/cell.ts'

const exhausted = new AbohawaError('timeline_exhausted', 'the timeline does not reach so far')
const rendered = {
  part: () => {
    throw exhausted
  },
} as unknown as RenderedWeather
const read = () => ({ readAt: 0 }) as CellResult
const join = createJoinedWeather(read, rendered, createDocUrl(null))
const point: ListedPlace = { cell: createGrid(0.1).cellOf(23.7, 90.4), place: pointPart(23.7, 90.4) }
const nowhere: Failed = { error: notFound(sentences.path.place('district', '9999')) }
const joined = (places: readonly (ListedPlace | Failed)[]) =>
  join({ places, wasZipped: false, zipped: undefined }, { consumer: undefined })

t.test('weather that has ended for all places is a failure, as for one place', async t => {
  t.throws(() => joined([point, point]), exhausted)
})

t.test('beside the error of a place it is a failure too: no place has weather', async t => {
  t.throws(() => joined([nowhere, point]), exhausted)
  const { chunks } = await joined([nowhere])
  t.match(JSON.parse(Buffer.concat([...chunks]).toString()), [{ code: 'place_not_found' }])
})
