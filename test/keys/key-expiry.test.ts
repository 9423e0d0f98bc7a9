// Without it a key could expire on another day than the operator wrote.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { expiryIn } from '../../src/keys/key-expiry.ts'

const now = Date.parse('2026-11-22T06:00:00Z')
const dhaka = createCalendar('Asia/Dhaka')
const iso = (given: string, zone = dhaka) => {
  const instant = expiryIn(given, zone, now)
  return instant === null ? null : new Date(instant).toISOString()
}

t.test('never, a day until its local end, an instant, or a duration from now', async t => {
  t.equal(iso('never'), null)
  for (const [given, expected] of [
    ['2026-11-22', '2026-11-22T18:00'],
    ['2027-01-31', '2027-01-31T18:00'],
    ['2027-01-31T12:00:00Z', '2027-01-31T12:00'],
    ['2027-01-31T12:00+06:00', '2027-01-31T06:00'],
    ['90d', '2027-02-20T06:00'],
    ['12h', '2026-11-22T18:00'],
    ['2h20m', '2026-11-22T08:20'],
    ['5m', '2026-11-22T06:05'],
    ['1d1h120s', '2026-11-23T07:02'],
  ] as const)
    t.equal(iso(given), `${expected}:00.000Z`, given)
  t.equal(iso('2027-03-28', createCalendar('Europe/Berlin')), '2027-03-28T22:00:00.000Z', 'a short day')
  t.equal(iso('2027-09-26', createCalendar('Pacific/Auckland')), '2027-09-26T11:00:00.000Z', 'far from UTC')
})

t.test('anything else is refused in one sentence', async t => {
  for (const given of [
    ...['', '90', '90 d', '-5d', '1.5h', '9999999d', 'tomorrow', '31.01.2027', '2027-02-30', '2027-13-01'],
    ...['2027-01-31T12:00', '2027-01-31 12:00', '+012027-01-31', '2027-01-31T25:00:00Z'],
  ])
    t.throws(() => iso(given), {
      message: `expires must be never, a day such as 2027-01-31 (until its end in Asia/Dhaka), an instant such as 2027-01-31T12:00:00Z, or a duration such as 90d or 12h, got ${JSON.stringify(given)}`,
    })
  for (const given of ['2026-11-21', '2026-11-22T05:59:59Z', '0d'])
    t.throws(() => iso(given), { message: `expires must be in the future, got "${given}"` })
})
