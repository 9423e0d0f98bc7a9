// The maximum size of a response, compared with real ones.

import t from 'tap'
import { hourMs } from '../../../src/common/calendar.ts'
import { elementsOf } from '../../../src/provider/open-meteo/json-elements.ts'
import { boundsFor, pathFor } from '../../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../../src/weather/cell.ts'
import { horizonFor } from '../../../src/weather/horizon.ts'
import { startProvider } from '../../support/provider-process.ts'

const provider = await startProvider(t)
const grid = createGrid(0.1)
const horizons = [horizonFor(1, 1), horizonFor(13 * hourMs, 48), horizonFor(48 * hourMs, 168)]

t.test('an answer has room to spare, also with white space between all that it holds', async t => {
  for (const horizon of horizons)
    for (const points of [1, 10]) {
      const cells = Array.from({ length: points }, (_, i) => grid.cellOf(22 + i / 10, 90))
      const text = await (await fetch(provider.url + pathFor(cells, horizon, 'Asia/Dhaka'))).text()
      const bounds = boundsFor(points, horizon)
      t.ok(text.length * 4 < bounds.bytes, `${text.length} of ${bounds.bytes} bytes`)
      const spaced = JSON.stringify(JSON.parse(text), null, 2)
      t.ok(spaced.length < bounds.bytes, `${spaced.length} of ${bounds.bytes} bytes with white space`)
      t.equal((await Array.fromAsync(elementsOf([Buffer.from(spaced)], bounds))).length, points)
    }
})

t.test('no response may have more than 64 MiB, however many points are requested', t => {
  for (const horizon of horizons) t.equal(boundsFor(1_000, horizon).bytes, 64 << 20)
  t.end()
})
