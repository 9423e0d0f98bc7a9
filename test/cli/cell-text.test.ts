// Without this, rare states of a cell could be reported in wrong words.

import t from 'tap'
import { cellText, distance } from '../../src/cli/operate/cell-text.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import type { CellReport } from '../../src/operate/reports/cell-report.ts'

const instants = { fetchedAt: '2026-11-21T05:00:00.000Z', run: '2026-11-21T04:30:00.000Z' }
const ends = { freshUntil: '2026-11-21T12:01:00.000Z', usableUntil: '2026-11-22T00:01:00.000Z' }
const entry = { ...instants, dueAt: '2026-11-21T12:00:00.000Z', ...ends, bytes: 1_700, upstream: null }
const report: CellReport = {
  ...{ of: '23.71,90.41', place: null, cell: { id: '23.7,90.4', latitude: 23.7, longitude: 90.4 } },
  ...{ cellDegrees: 0.1, places: null, areas: null, placeCount: null, at: '2026-11-21T06:00:00.000Z' },
  shared: { kind: 'redis', entry: null, fault: 'Redis failed: away' },
  gateway: {
    memory: { ...entry, state: 'expired', purged: 'hard' },
    ...{ slices: null, freshness: 'run', stretch: null, loading: true, lastRequestedAt: null },
    newestRun: { initialisedAt: '2026-11-21T00:00:00.000Z', availableAt: '2026-11-21T04:30:00.000Z' },
    lastFailure: {
      ...{ code: 'provider_limited', message: 'no room', failedAt: '2026-11-21T05:30:00.000Z' },
      ...{ attempts: 3, backoffUntil: '2026-11-21T05:59:00.000Z' },
    },
  },
}
const text = (given: CellReport, zone = 'Asia/Dhaka') =>
  cellText(given, 'http://gw:9090', createCalendar(zone))

t.test('runs, a spent budget, a load, failures in a row and an unavailable store are shown', t => {
  const shown = text(report)
  for (const line of [
    /^The point 23\.71,90\.41\n/,
    /^ {2}freshness {3}by model run: newest available 2026-11-21 10:30:00, 90 min ago\n +for as long as allowed, because nothing is left of the budget$/m,
    /^ {2}last used {3}not recently$/m,
    /^ {2}loading {5}yes, /m,
    /^ {2}last error {2}2026-11-21 11:30:00, 30 min ago, 3 in a row\n +provider_limited: no room\n +may be tried since 2026-11-21 11:59:00, 60 s ago$/m,
    /^ {2}purged +yes: gone\n/m,
    /^ {2}expires +no more$/m,
    /^ {2}Of the shared tier \(redis\) nothing is known: Redis failed: away\.$/m,
  ])
    t.match(shown, line)
  t.end()
})

t.test('a stretch is shown with its factor, and times are those of the zone', t => {
  const shown = text({ ...report, gateway: report.gateway && { ...report.gateway, stretch: 2.345 } }, 'UTC')
  t.match(shown, /stretched 2\.3 times, because the budget runs short/)
  t.match(shown, /times +UTC, now 2026-11-21 06:00:00/)
  t.end()
})

t.test('a distance in time is shown in the unit that keeps it small', t => {
  const minute = 60_000
  const table: [number, string][] = [
    [0, 'now'],
    [-400, 'now'],
    [-5_000, '5 s ago'],
    [99_000, 'in 99 s'],
    [2 * minute, 'in 2 min'],
    [-99 * minute, '99 min ago'],
    [100 * minute, 'in 2 h'],
    [-47 * 60 * minute, '47 h ago'],
    [-72 * 60 * minute, '3 days ago'],
  ]
  for (const [ms, words] of table) t.equal(distance(ms), words)
  t.end()
})
