// Backoff after failed loads: how long it lasts, and what ends it.

import t from 'tap'
import { BackoffError, type BackoffOptions, createFailures } from '../../src/cache/failures.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { manualClock } from '../support/manual-clock.ts'

const options: BackoffOptions = { retryAfterMs: 1_000, retryAfterAtMostMs: 8_000 }
const setUp = (chance = 0, given = options) => {
  const clock = manualClock()
  return { clock, failures: createFailures(given, clock, () => chance) }
}

const backoffs = ({ clock, failures }: ReturnType<typeof setUp>, error = new Error('down')) =>
  Array.from({ length: 6 }, () => {
    const { backoffUntil } = failures.record('a', error, false)
    const backoff = backoffUntil - clock.now()
    clock.set(backoffUntil)
    return backoff
  })

t.test('the first backoff is the configured one, and each failure in a row doubles it', t => {
  const set = setUp()
  t.strictSame(backoffs(set).slice(0, 3), [1_000, 2_000, 4_000])
  t.equal(set.failures.last('a')?.attempts, 6)
  t.end()
})

t.test('jitter makes a backoff up to half longer; the longest up to a third shorter', t => {
  t.strictSame(backoffs(setUp(0)), [1_000, 2_000, 4_000, 5_334, 5_334, 5_334])
  t.strictSame(backoffs(setUp(1)), [1_500, 3_000, 6_000, 8_000, 8_000, 8_000])
  for (const chance of [0, 1]) {
    const equal = { retryAfterMs: 1_000, retryAfterAtMostMs: 1_000 }
    t.strictSame(backoffs(setUp(chance, equal)), Array(6).fill(1_000), 'nor shorter than the first')
  }
  t.end()
})

t.test('an error may have a maximum of its own, shorter or longer', t => {
  for (const [longest, expected] of [
    [20_000, [1_500, 3_000, 6_000, 12_000, 20_000, 20_000]],
    [500, Array(6).fill(500)],
  ] as const) {
    const given = { ...options, longestAfter: (error: unknown) => (error === refused ? longest : undefined) }
    const refused = new Error('refused')
    t.strictSame(backoffs(setUp(1, given), refused), expected)
    t.strictSame(backoffs(setUp(1, given))[5], 8_000, 'and others keep theirs')
  }
  t.end()
})

t.test('a purge ends the backoff', t => {
  const { failures, clock } = setUp()
  failures.record('a', new Error('down'), true)
  failures.record('b', Object.assign(new Error('refused'), { retryAt: clock.now() + 600_000 }), true)
  failures.record('c', new Error('down'), true)
  failures.clearWhere(key => key !== 'c')
  t.strictSame(
    ['a', 'b', 'c'].map(key => failures.backoff(key)?.attempts),
    [undefined, undefined, 1],
  )
  t.end()
})

t.test('a backoff covers one key until its end, and a success clears it', t => {
  const { clock, failures } = setUp()
  failures.record('a', new Error('down'), true)
  t.match(failures.backoff('a'), { cold: true, attempts: 1 })
  t.equal(failures.backoff('b'), undefined)
  clock.advance(1_000)
  t.equal(failures.backoff('a'), undefined)
  t.match(failures.last('a'), { attempts: 1 })
  failures.clear('a')
  t.equal(failures.last('a'), undefined)
  t.end()
})

t.test('an error with a retryAt sets the backoff and lengthens no later one', t => {
  const { clock, failures } = setUp()
  const limited = Object.assign(new AbohawaError('provider_limited', 'used up'), {
    retryAt: clock.now() + 86_400_000,
  })
  t.equal(failures.record('a', limited, false).backoffUntil, limited.retryAt)
  clock.set(limited.retryAt)
  t.equal(failures.record('a', new Error('down'), false).backoffUntil - clock.now(), 1_000)
  t.end()
})

t.test('endBackoff ends all backoff except up to an announced retryAt', t => {
  const { clock, failures } = setUp()
  failures.record('a', new Error('down'), true)
  failures.record('b', Object.assign(new Error('refused'), { retryAt: clock.now() + 600_000 }), true)
  failures.endBackoff()
  t.equal(failures.backoff('a'), undefined)
  t.match(failures.backoff('b'), { attempts: 1 })
  t.end()
})

t.test('a repeated failure has the code, the message and the end of the backoff', t => {
  const { clock, failures } = setUp()
  const error = new BackoffError(failures.record('a', new AbohawaError('provider_failing', 'it fails'), true))
  t.match(error, { code: 'provider_failing', message: 'it fails', retryAt: clock.now() + 1_000 })
  t.equal(new BackoffError({ error: 'odd', backoffUntil: 1 }).code, 'internal')
  t.end()
})

t.test('an announced backoff is cut to a day and an hour, and an invalid one is ignored', t => {
  const { clock, failures } = setUp()
  const backoff = (retryAt: unknown) => {
    const error = Object.assign(new AbohawaError('provider_limited', 'later'), { retryAt })
    const { backoffUntil } = failures.record('a', error, true)
    failures.clear('a')
    return backoffUntil - clock.now()
  }
  const longest = 25 * 3_600_000
  t.equal(backoff(clock.now() + longest), longest)
  for (const retryAt of [clock.now() + longest + 1, 253_402_300_799_000, 1e300])
    t.equal(backoff(retryAt), longest)
  for (const retryAt of [Number.NaN, Number.POSITIVE_INFINITY, 'soon', undefined])
    t.equal(backoff(retryAt), 1_000)
  t.end()
})

t.test(
  'a backoff ends early where its reason is gone, announced or not, and the failure stays known',
  async t => {
    const clock = manualClock()
    let isLifted = false
    const failures = createFailures(
      { retryAfterMs: 1_000, retryAfterAtMostMs: 9_000, isLifted: () => isLifted },
      clock,
    )
    const announced = Object.assign(new Error('the day is used up'), { retryAt: clock.now() + 60_000 })
    failures.record('a', announced, true)
    t.ok(failures.backoff('a'))
    isLifted = true
    t.equal(failures.backoff('a'), undefined)
    t.equal(failures.last('a')?.error, announced)
    isLifted = false
    t.ok(failures.backoff('a'), 'for as long as it is gone')
  },
)

t.test('a clock that is set back lengthens no backoff', t => {
  const { clock, failures } = setUp()
  failures.record('a', new Error('down'), true)
  clock.advance(-30_000)
  t.ok(failures.backoff('a'), 'a correction')
  t.equal(failures.backoffs().size, 1)
  clock.advance(-3_600_000)
  t.notOk(failures.backoff('a'))
  t.equal(failures.backoffs().size, 0)
  t.end()
})
