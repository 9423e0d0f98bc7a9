// Without it the weather of test keys could keep a replaced catalogue in memory, or be made again for each request.

import t from 'tap'
import { createFixedWeather } from '../../src/api/fixed-weather.ts'
import { openCatalogue } from '../../src/catalogue/live-catalogue.ts'
import { createCalendar, utcDayMs } from '../../src/common/calendar.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

t.test('what is rendered of test weather is kept until the catalogue is replaced', async t => {
  const { current, close } = await openCatalogue({ path: usualCatalogue, pollMs: utcDayMs })
  t.teardown(close)
  const catalogue = { current }
  const { read, inMemory } = createFixedWeather({
    ...{ catalogue, calendar: createCalendar('Asia/Dhaka'), hourlyHours: 48 },
  })
  const cell = createGrid(0.1).cellOf(23.8, 90.4)
  t.equal(inMemory(cell), undefined)
  const made = read(cell)
  const readAt = Date.parse('2026-04-14T06:00:00Z')
  t.hasStrict(made, {
    ...{ subject: cell, readAt, fetchedAt: readAt, freshUntil: readAt + 3_600_000 },
    ...{ outcome: 'hit', source: 'test', forwarded: false, collapsed: false },
  })
  const elsewhere = [createGrid(0.1).cellOf(23.8, 90.5), createGrid(0.1).cellOf(23.9, 90.4)]
  for (const other of elsewhere) t.notSame(read(other).value.values, made.value.values)
  made.derived.data = ['rendered']
  t.equal(read(cell).derived, made.derived)
  t.equal(inMemory(cell)?.derived, made.derived)
  catalogue.current = Object.create(current)
  t.equal(inMemory(cell), undefined)
  const again = read(cell)
  t.equal(again.derived.data, undefined)
  t.strictSame(again.value, made.value, 'the weather is the same')
})
