// Without it the lines of an outage could have counts that do not add up.

import fc from 'fast-check'
import t from 'tap'
import { createOutage } from '../../src/telemetry/outage.ts'
import { manualClock } from '../support/manual-clock.ts'

const setUp = () => {
  const clock = manualClock('2026-11-21T06:00:00Z')
  const seen = { stale: 1_000, errors: 50 }
  const lines: [string, Record<string, unknown>][] = []
  const outage = createOutage({
    clock,
    noticed: () => ({ ...seen }),
    kindOf: ({ code }) => code,
    write: (phase, fields) => void lines.push([phase, { ...fields }]),
  })
  return { clock, seen, lines, outage }
}
const cause = { code: 'provider_failing', reason: 'HTTP 500' }

t.test('a hundred seconds of failures are three lines', async t => {
  const { clock, seen, lines, outage } = setUp()
  outage.failed('before')
  outage.begin(cause)
  for (let second = 0; second < 100; second++) {
    clock.advance(1_000)
    seen.stale += 10
    outage.failed('provider_failing', { cell: `${second % 4}`, usableUntil: clock.now() + 60_000 - second })
    if (second % 10 === 0) {
      seen.errors += 1
      outage.failed('provider_circuit_open', { cell: 'cold', usableUntil: null })
    }
    outage.tick()
  }
  outage.begin({ code: 'other', reason: 'no second one' })
  t.strictSame(outage.state(), {
    ...cause,
    since: Date.parse('2026-11-21T06:00:00Z'),
    failedAt: Date.parse('2026-11-21T06:01:40Z'),
    failures: 110,
    stale: 1_000,
    errors: 10,
  })
  outage.end({ reconciled: 7 })
  outage.end()
  outage.tick()
  t.equal(outage.state(), undefined)
  t.hasStrict(lines, [['started', cause], ['continues'], ['ended']])
  t.equal(lines.length, 3)
  const [, minute, end] = lines.map(([, fields]) => fields)
  t.hasStrict(minute, {
    seconds: 60,
    failures: 65,
    causes: { provider_failing: 59, provider_circuit_open: 6 },
    cells: 5,
    worst: { cell: 'cold', failingSince: '2026-11-21T06:00:01.000Z', usableUntil: null },
    stale: 600,
    errors: 6,
  })
  t.match(end, {
    seconds: 100,
    failures: 110,
    causes: { provider_failing: 100, provider_circuit_open: 10 },
    cells: 5,
    stale: 1_000,
    errors: 10,
    reconciled: 7,
  })
})

t.test('the worst cell has nothing cached, or runs out first, or fails longest', async t => {
  const { clock, lines, outage } = setUp()
  const worst = () => {
    clock.advance(60_000)
    outage.tick()
    return (lines.at(-1)?.[1].worst as { cell?: string } | undefined)?.cell
  }
  const now = clock.now()
  outage.begin(cause)
  outage.failed('x', { cell: 'b', usableUntil: now + 5_000 })
  outage.failed('x', { cell: 'c', usableUntil: now + 5_000 })
  t.equal(worst(), 'b', 'of equals the first')
  outage.failed('x', { cell: 'c', usableUntil: now + 4_000 })
  t.equal(worst(), 'c', 'runs out first')
  outage.failed('x', { cell: 'd', usableUntil: null })
  t.equal(worst(), 'd', 'nothing cached')
})

t.test('after a stop there is one line for all minutes, and a clock set back silences none', async t => {
  const { clock, lines, outage } = setUp()
  outage.begin(cause)
  const seconds = [250, 49, 1, -6 * 3_600, 60, -6 * 3_600].map(each => {
    clock.advance(each * 1000)
    outage.tick()
    return lines.at(-1)?.[1].seconds
  })
  t.strictSame(seconds.slice(0, 3), [250, 250, 300], 'and keeps to whole ones')
  t.equal(seconds[4], 60)
  outage.end()
  t.hasStrict(lines.at(-1), ['ended', { seconds: 0 }], 'no outage lasts less than no time')
})

t.test('a clock that is corrected while it lasts makes it no longer', async t => {
  const { clock, lines, outage } = setUp()
  let elapsed = 0
  const corrected = { ...clock, elapsed: () => elapsed }
  const pass = (ms: number) => {
    clock.advance(ms)
    elapsed += ms
  }
  const { begin, tick, end, state } = createOutage({
    clock: corrected,
    noticed: () => ({ stale: 0, errors: 0 }),
    kindOf: ({ code }) => code,
    write: (phase, fields) => void lines.push([phase, { ...fields }]),
  })
  pass(5_000)
  begin(cause, clock.now() - 5_000)
  pass(20_000)
  clock.advance(324 * 86_400_000)
  tick()
  t.equal(state()?.since, clock.now() - 25_000)
  t.equal(state()?.failedAt, clock.now() - 20_000)
  end()
  t.hasStrict(lines.at(-1), ['ended', { seconds: 25 }])
  t.equal(outage.isOn(), false)
})

t.test('in any order of events the sums add up, and there is a line a minute at most', async () => {
  const event = fc.oneof(
    fc.record({ advance: fc.integer({ min: 0, max: 90_000 }) }),
    fc.record({ fail: fc.constantFrom('a', 'b') }),
    fc.constantFrom({ begin: true }, { end: true }),
  )
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), events => {
      const { clock, lines, outage } = setUp()
      let failures = 0
      let sum = 0
      let since = 0
      for (const each of [...events, { end: true }]) {
        if ('advance' in each) {
          clock.advance(each.advance)
          outage.tick()
        } else if ('fail' in each) {
          if (outage.isOn()) failures += 1
          outage.failed(each.fail)
          if (outage.isOn() && outage.state()?.failures !== failures) return false
        } else if ('begin' in each) {
          if (!outage.isOn()) since = clock.now()
          outage.begin(cause)
        } else {
          const elapsed = clock.now() - since
          outage.end()
          const of = lines.splice(0)
          if (of.length === 0) continue
          const minutes = of.filter(([phase]) => phase === 'continues')
          for (const [, fields] of minutes) sum += Number(fields.failures)
          if (minutes.length > elapsed / 60_000) return false
          const whole = of.at(-1)?.[1].failures
          if (whole !== failures || sum > failures) return false
          failures = 0
          sum = 0
        }
      }
      return true
    }),
  )
})

t.test('a further cause is a line, each kind once and twenty in all', async t => {
  const { lines, outage } = setUp()
  outage.further(cause)
  outage.begin(cause)
  const refused = { code: 'provider_refused', reason: 'HTTP 401' }
  for (const next of [cause, refused, { ...refused, reason: 'HTTP 401, again' }, cause]) outage.further(next)
  t.strictSame(lines, [
    ['started', cause],
    ['has another cause', refused],
  ])
  t.hasStrict(outage.state(), refused, 'the newest')
  for (let i = 0; i < 100; i++) outage.further({ code: `${i}`, reason: 'x' })
  t.equal(lines.length, 20)
})
