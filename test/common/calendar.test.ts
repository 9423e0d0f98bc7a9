// Without it days and midnights could be wrong in zones with summer time or half-hour offsets.

import t from 'tap'
import {
  createCalendar,
  dayNumber,
  dayOfNumber,
  daysUpTo,
  parseHttpDate,
  parseInstant,
} from '../../src/common/calendar.ts'

const at = (iso: string) => Date.parse(iso)
const iso = (instant: number) => new Date(instant).toISOString()

// zone, instant, local minute, next midnight
const table = [
  ['Asia/Dhaka', '2026-11-21T17:59:59.999Z', '2026-11-21T23:59', '2026-11-21T18:00:00.000Z'],
  ['Asia/Dhaka', '2026-11-21T18:00:00.000Z', '2026-11-22T00:00', '2026-11-22T18:00:00.000Z'],
  ['Asia/Dhaka', '2028-02-28T18:00:00.000Z', '2028-02-29T00:00', '2028-02-29T18:00:00.000Z'],
  ['Asia/Dhaka', '2026-12-31T18:00:00.000Z', '2027-01-01T00:00', '2027-01-01T18:00:00.000Z'],
  ['UTC', '2026-11-21T23:59:00.000Z', '2026-11-21T23:59', '2026-11-22T00:00:00.000Z'],
  ['Asia/Kolkata', '2026-11-21T18:29:00.000Z', '2026-11-21T23:59', '2026-11-21T18:30:00.000Z'],
  ['Asia/Kathmandu', '2026-11-21T18:14:00.000Z', '2026-11-21T23:59', '2026-11-21T18:15:00.000Z'],
  ['America/New_York', '2026-11-01T04:00:00.000Z', '2026-11-01T00:00', '2026-11-02T05:00:00.000Z'],
  ['America/New_York', '2026-03-08T05:00:00.000Z', '2026-03-08T00:00', '2026-03-09T04:00:00.000Z'],
  // Midnight of 2026-04-24 does not exist in Cairo: the day begins at 01:00.
  ['Africa/Cairo', '2026-04-23T12:00:00.000Z', '2026-04-23T14:00', '2026-04-23T22:00:00.000Z'],
] as const

t.test('an instant has its local minute and day, which ends at the next midnight', async t => {
  for (const [zone, instant, local, midnight] of table) {
    const calendar = createCalendar(zone)
    t.equal(calendar.localMinute(at(instant)), local, `${instant} in ${zone}`)
    t.equal(calendar.dayOf(at(instant)), local.slice(0, 10))
    t.equal(iso(calendar.nextMidnight(at(instant))), midnight)
  }
})

t.test('offsets follow the summer time of the zone', async t => {
  const calendar = createCalendar('Europe/Berlin')
  t.equal(calendar.offsetSecondsAt(at('2026-03-29T00:59:00Z')), 3_600)
  t.equal(calendar.offsetSecondsAt(at('2026-03-29T01:00:00Z')), 7_200)
  t.equal(createCalendar('America/St_Johns').offsetSecondsAt(at('2026-01-01T00:00Z')), -12_600)
  t.equal(createCalendar('UTC').offsetSecondsAt(0), 0)
  t.throws(() => createCalendar('Asia/Atlantis'), RangeError)
})

t.test('every instant gets its own midnight, whichever instant came before it', async t => {
  const days = ['2026-03-28', '2026-03-29', '2026-03-30']
  const instants = days.flatMap(day =>
    [0, 11, 22].map(hour => at(`${day}T${String(hour).padStart(2, '0')}:30Z`)),
  )
  const calendar = createCalendar('Europe/Berlin')
  for (const before of instants)
    for (const instant of instants) {
      calendar.nextMidnight(before)
      t.equal(calendar.nextMidnight(instant), createCalendar('Europe/Berlin').nextMidnight(instant))
      t.equal(calendar.dayOf(instant), createCalendar('Europe/Berlin').dayOf(instant))
    }
})

t.test('days are counted through leap days and the turn of the year', async t => {
  t.equal(dayOfNumber(dayNumber('2028-02-28') + 1), '2028-02-29')
  t.equal(dayOfNumber(dayNumber('2026-02-28') + 1), '2026-03-01')
  t.strictSame(daysUpTo('2027-01-01', 3), ['2027-01-01', '2026-12-31', '2026-12-30'])
  t.ok(Number.isNaN(dayNumber('2026-13-01')))
})

t.test('a time without a zone is UTC, whatever the zone of the machine', async t => {
  const { TZ } = process.env
  t.teardown(() => {
    if (TZ === undefined) delete process.env.TZ
    else process.env.TZ = TZ
  })
  for (const zone of ['Asia/Dhaka', 'America/New_York']) {
    process.env.TZ = zone
    for (const [text, instant] of [
      ['2026-11-21T06:00:00.123', '2026-11-21T06:00:00.123Z'],
      ['2026-11-21 06:00', '2026-11-21T06:00:00.000Z'],
      ['2026-11-21', '2026-11-21T00:00:00.000Z'],
      ['2026-11-21T06:00:00+06:00', '2026-11-21T00:00:00.000Z'],
      ['2026-11-21T06:00:00+0600', '2026-11-21T00:00:00.000Z'],
      ['2026-11-21T06:00:00.1234567Z', '2026-11-21T06:00:00.123Z'],
    ] as const)
      t.equal(iso(parseInstant(text)), instant, `${text} in ${zone}`)
    for (const text of [
      '2026-11-21T06',
      '2026-11-21 noon',
      '2026-13-01',
      '2026-02-30',
      '2026-11-21T25:00Z',
      '',
    ])
      t.ok(Number.isNaN(parseInstant(text)), text)
    t.equal(iso(parseHttpDate('Sat, 21 Nov 2026 06:00:00 GMT')), '2026-11-21T06:00:00.000Z')
    t.ok(Number.isNaN(parseHttpDate('Sat, 21 Nov 2026 06:00:00')))
  }
})
