// Without it a list that nobody requests again could keep a replaced catalogue in memory.

import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { costOfList, listQueries } from '../../src/api/place-list.ts'
import { weatherEndpointsOf } from '../../src/api/weather-endpoints.ts'
import { createCatalogue } from '../../src/catalogue/catalogue.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

t.test(
  'a list costs its distinct places, or one unit where it is refused; without a list there is no cost',
  async t => {
    for (const [query, cost] of [
      ['places=district/3026,coords/23/90,district/3026&lang=en', 2],
      ['places=district/3026,coords/23/90&lang=fr', 1],
      ['places=', 1],
      ['places=a&places=b', 1],
      ['places[]=a', 1],
      ['places=%E0', 1],
      ['lang=fr', undefined],
      ['', undefined],
    ] as const)
      t.equal(costOfList('weather_places')(query), cost, query)
    t.equal(costOfList('forecast_places')('places=a,b,c&days=8'), 1)
    t.equal(costOfList('forecast_places')('places=a,b,c&days=7&lang=fr'), 3)
    for (const read of Object.values(listQueries))
      t.equal(read('places=a,b'), read('places=a,b'), 'the same list, whose parts are kept by it')
    t.hasStrict(listQueries.forecast_places('places=a&days=2'), { places: ['a'], days: 2 })
    t.hasStrict(listQueries.weather_places('places=a'), { places: ['a'], lang: 'bn' })
  },
)

t.test('a list that nobody asks for again keeps no former catalogue', async t => {
  const unavailable = new AbohawaError('provider_down', 'away')
  const catalogue = { current: createCatalogue(await readSnapshot(usualCatalogue)) }
  const { weather_places: ask } = weatherEndpointsOf({
    catalogue,
    grid: createGrid(0.1),
    calendar: createCalendar('Asia/Dhaka'),
    hourlyHours: 48,
    timelines: { read: () => Promise.reject(unavailable) },
  })
  const query = (point: string) => ({ params: {}, query: `places=district/3026,coords/${point}` })
  await t.rejects(async () => ask(query('23/90')), unavailable)
  const former = new WeakRef(catalogue.current)
  catalogue.current = createCatalogue(await readSnapshot(usualCatalogue))
  await t.rejects(async () => ask(query('24/90')), unavailable)
  for (let i = 0; i < 10 && former.deref(); i++) {
    await turn()
    collect()
  }
  t.equal(former.deref(), undefined)
})
