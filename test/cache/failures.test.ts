// Without it a failing load could be retried on each hit, or a backoff could last too long.

import t from 'tap'
import {
  BackoffError,
  type BackoffOptions,
  createFailures,
  createUncached,
} from '../../src/cache/failures.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { manualClock } from '../support/manual-clock.ts'
import { workPerTurn } from './work-per-turn.ts'

const options: BackoffOptions = { retryAfterMs: 1_000, retryAfterAtMostMs: 8_000 }
const down = new Error('down')
const setUp = (given: Partial<BackoffOptions> = {}, chance = 0) => {
  const clock = manualClock()
  const failures = createFailures({ ...options, ...given }, clock, () => chance)
  const announced = (retryAt: unknown) =>
    Object.assign(new AbohawaError('provider_limited', 'later'), { retryAt })
  return { clock, failures, announced, inTenMinutes: announced(clock.now() + 600_000) }
}

t.test('each failure in a row doubles the backoff, with jitter and up to the longest', async t => {
  const refused = new Error('refused')
  const equal = { retryAfterMs: 1_000, retryAfterAtMostMs: 1_000 }
  const longestAfter = (ms: number) => ({ longestAfter: (e: unknown) => (e === refused ? ms : undefined) })
  // The settings, the chance, the error, and the backoffs of six failures in a row.
  const rows: [Partial<BackoffOptions>, number, Error, number[]][] = [
    [{}, 0, down, [1_000, 2_000, 4_000, 5_334, 5_334, 5_334]],
    [{}, 1, down, [1_500, 3_000, 6_000, 8_000, 8_000, 8_000]],
    // Never shorter than the first.
    [equal, 0, down, Array(6).fill(1_000)],
    [equal, 1, down, Array(6).fill(1_000)],
    // An error may have a maximum of its own, shorter or longer; others keep theirs.
    [longestAfter(20_000), 1, refused, [1_500, 3_000, 6_000, 12_000, 20_000, 20_000]],
    [longestAfter(500), 1, refused, Array(6).fill(500)],
    [longestAfter(500), 1, down, [1_500, 3_000, 6_000, 8_000, 8_000, 8_000]],
  ]
  for (const [given, chance, error, expected] of rows) {
    const { clock, failures } = setUp(given, chance)
    const backoffs = Array.from({ length: 6 }, () => {
      const { backoffUntil, failedAt } = failures.record('a', error, false)
      clock.set(backoffUntil)
      return backoffUntil - failedAt
    })
    t.strictSame(backoffs, expected, JSON.stringify([given, chance, error.message]))
    t.equal(failures.last('a')?.attempts, 6)
  }
})

t.test('a backoff covers one key until its end, and a success clears it', async t => {
  const { clock, failures } = setUp()
  failures.record('a', down, true)
  t.match(failures.backoff('a'), { cold: true, attempts: 1 })
  t.equal(failures.backoff('b'), undefined)
  clock.advance(1_000)
  t.equal(failures.backoff('a'), undefined)
  t.match(failures.last('a'), { attempts: 1 })
  failures.clear('a')
  t.equal(failures.last('a'), undefined)
})

t.test('a purge ends the backoff, and a recovered source what no retryAt announced', async t => {
  for (const ends of ['purge', 'recovery']) {
    const { failures, inTenMinutes } = setUp()
    failures.record('a', down, true)
    failures.record('b', inTenMinutes, true)
    failures.record('c', down, true)
    if (ends === 'recovery') failures.endBackoff()
    else for (const key of failures.keys()) if (key !== 'c') failures.clear(key)
    const left = ['a', 'b', 'c'].filter(key => failures.backoff(key))
    t.strictSame(left, ends === 'purge' ? ['c'] : ['b'], ends)
  }
})

t.test('a retryAt sets the backoff, up to a day and an hour, and lengthens no later one', async t => {
  const { clock, failures, announced } = setUp()
  const longest = 25 * 3_600_000
  const at = clock.now()
  for (const [retryAt, expected] of [
    [at + 86_400_000, 86_400_000],
    [at + longest, longest],
    [at + longest + 1, longest],
    [253_402_300_799_000, longest],
    [1e300, longest],
    [Number.NaN, 1_000],
    [Number.POSITIVE_INFINITY, 1_000],
    ['soon', 1_000],
    [undefined, 1_000],
  ] as const) {
    t.equal(failures.record('a', announced(retryAt), true).backoffUntil - at, expected, `${retryAt}`)
    failures.clear('a')
  }
  failures.record('a', announced(at + 1), false)
  for (const ms of [1_000, 2_000]) t.equal(failures.record('a', down, false).backoffUntil - at, ms)
})

t.test('a repeated failure has the code, the message and the end of the backoff', async t => {
  const { clock, failures } = setUp()
  const error = new BackoffError(failures.record('a', new AbohawaError('provider_failing', 'it fails'), true))
  const repeated = { name: 'BackoffError', code: 'provider_failing', message: 'it fails' }
  t.hasStrict({ ...error, message: error.message }, { ...repeated, retryAt: clock.now() + 1_000 })
  t.equal(new BackoffError({ error: 'odd', backoffUntil: 1 }).code, 'internal')
})

t.test('a backoff ends early while its reason is gone, and the failure stays known', async t => {
  let isLifted = false
  const { failures, inTenMinutes } = setUp({ isLifted: () => isLifted })
  failures.record('a', inTenMinutes, true)
  t.ok(failures.backoff('a'))
  isLifted = true
  t.equal(failures.backoff('a'), undefined)
  t.equal(failures.last('a')?.error, inTenMinutes)
  t.equal(failures.backoffs().size, 0)
  isLifted = false
  t.ok(failures.backoff('a'), 'for as long as it is gone')
})

t.test('a clock that is set back lengthens no backoff', async t => {
  const { clock, failures } = setUp()
  failures.record('a', down, true)
  clock.advance(-30_000)
  t.ok(failures.backoff('a'), 'a correction')
  t.strictSame([...failures.backoffs()], [['internal', 1]])
  clock.advance(-3_600_000)
  t.notOk(failures.backoff('a'))
  t.equal(failures.backoffs().size, 0)
})

t.test('only so many failures and keys without an entry are known, the newest ones', t => {
  const { failures } = setUp()
  for (let i = 0; i <= 20_000; i++) failures.record(`k${i}`, down, true)
  t.strictSame([failures.keys().length, failures.last('k0')], [20_000, undefined])
  t.equal(failures.last('k1')?.attempts, 1)
  const uncached = createUncached()
  for (let i = 0; i <= 50_000; i++) uncached.add(`k${i}`)
  t.strictSame([uncached.has('k0'), uncached.has('k1'), uncached.has('k50000')], [false, true, true])
  t.end()
})

t.test(
  'very many keys without an entry are checked in parts, with a turn of the event loop for each',
  async t => {
    const uncached = createUncached()
    for (let i = 0; i < 5_000; i++) uncached.add(`k${i}`)
    const looked: string[] = []
    const { most, all } = await workPerTurn(async worked => {
      const isInDemand = (key: string): boolean => {
        worked()
        return Number(key.slice(1)) % 10 === 0
      }
      await uncached.check(isInDemand, async key => looked.push(key))
    })
    t.strictSame([most, all], [1_000, 5_000])
    t.strictSame(
      looked,
      Array.from({ length: 64 }, (_, i) => `k${i * 10}`),
      'the oldest ones in demand',
    )
    t.strictSame([uncached.has('k4990'), uncached.has('k4991')], [true, false])
    let asked = 0
    const isInDemand = (): boolean => {
      asked += 1
      return false
    }
    const checked = uncached.check(isInDemand, async () => {})
    t.equal(asked, 500, 'the first part immediately')
    await checked
  },
)
