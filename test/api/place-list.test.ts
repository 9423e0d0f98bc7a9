// Without it a list that nobody requests again could keep a replaced catalogue in memory.

import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { weatherEndpointsOf } from '../../src/api/weather-endpoints.ts'
import { createCatalogue } from '../../src/catalogue/catalogue.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

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
