// Without it pages could show digits, instants or durations of another language or time zone.

import t from 'tap'
import { createFigures, secondsBetween } from '../../../src/common/page/figures.js'

const en = createFigures('en', 'Asia/Dhaka')
const bn = createFigures('bn', 'Asia/Dhaka')

t.test('figures are written in the digits of the language', async t => {
  const cases: [written: string, wanted: string][] = [
    [en.count(1234567), '1,234,567'],
    [bn.count(1234567), '১২,৩৪,৫৬৭'],
    [en.share(0.9873), '98.7%'],
    [bn.share(0.9873), '৯৮.৭%'],
    [en.measured(0.347), '0.35'],
    [en.measured(12.34), '12.3'],
    [en.measured(571.6), '572'],
    [en.measured(99.96), '100'],
    [en.latency(0.00031), '0.31 ms'],
    [en.latency(1.5), '1.50 s'],
    [bn.latency(0.0123), '১২.৩ মি.সে.'],
    [en.bytes(0), '0 B'],
    [en.bytes(1023), '1,023 B'],
    [en.bytes(48_000_000), '45.8 MiB'],
    [en.bytes(3 * 1024 ** 4), '3,072 GiB'],
    [bn.degrees(24.34), '২৪.৩ °C'],
    [en.plain(90.4), '90.4'],
    [en.count(null), '–'],
    [bn.latency(undefined), '–'],
  ]
  for (const [written, wanted] of cases) t.equal(written, wanted)
})

t.test('durations have two units at most', async t => {
  const cases: [seconds: number, en: string, bn: string][] = [
    [-3, '0 s', '০ সেকেন্ড'],
    [59.4, '59 s', '৫৯ সেকেন্ড'],
    [59.6, '1 min', '১ মিনিট'],
    [3_599, '59 min', '৫৯ মিনিট'],
    [3_600, '1 h', '১ ঘণ্টা'],
    [9_000, '2 h 30 min', '২ ঘণ্টা ৩০ মিনিট'],
    [48 * 3_600, '2 d', '২ দিন'],
  ]
  for (const [seconds, english, bengali] of cases)
    t.strictSame([en.duration(seconds), bn.duration(seconds)], [english, bengali])
})

t.test(
  'an instant is told in the time zone of the gateway, with its day and year where these are others',
  async t => {
    const now = '2026-11-21T17:30:00Z'
    t.equal(en.instant('2026-11-21T06:00:05Z', now), '12:00')
    t.equal(en.instant('2026-11-21T06:00:05Z', now, true), '12:00:05')
    t.equal(en.instant('2026-11-21T18:30:00Z', now), '22 Nov, 00:30')
    t.equal(en.instant('2027-11-21T18:30:00Z', now), '22 Nov 2027, 00:30')
    t.equal(en.dateTime('2026-11-21T06:00:05Z', true), '21 Nov 2026, 12:00:05')
    t.match(bn.instant('2026-11-21T18:30:00Z', now), /^২২ .+, ০০:৩০$/)
    t.equal(en.instant(null, now), '–')
    t.equal(en.day('2026-11-21'), '21 Nov')
    t.equal(createFigures('en', 'America/New_York').instant('2026-11-21T06:00:00Z', now), '01:00')
    t.equal(secondsBetween(now, '2026-11-21T17:31:00Z'), 60)
  },
)
