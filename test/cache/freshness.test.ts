// Without it weather could turn stale too early, too late, or again after it was fresh.

import t from 'tap'
import {
  createFreshness,
  createStretch,
  freshnessOf,
  jitterOf,
  type Run,
  type RunOptions,
} from '../../src/cache/freshness.ts'
import { type FreshnessOptions, longestUseMs } from '../../src/weather/horizon.ts'
import { textEntry } from './cache-set-up.ts'

const hour = 3_600_000
const options: FreshnessOptions & RunOptions = {
  freshForMs: 1_000,
  freshSpread: 0.2,
  freshForAtMostMs: 4_000,
  refreshAheadForMs: 50,
  staleForMs: 5_000,
  settleForMs: 0,
  spreadOverMs: 0,
}
const entry = (jitter: number, fetchedAt = 10_000) => textEntry({ jitter, fetchedAt })
const unstretched = () => 1

t.test('by age: fresh for its time and the lead, then stale for its time, then expired', async t => {
  const policy = createFreshness({ ...options, freshSpread: 0 }, unstretched)
  const at = (now: number) => freshnessOf(entry(0.5), policy, now)
  const states = ['fresh', 'fresh', 'stale', 'stale', 'expired']
  t.strictSame([10_000, 11_049, 11_050, 16_049, 16_050].map(at), states)
})

t.test('an entry that ends earlier is due a lead before its end, and not served after it', async t => {
  const policy = createFreshness(options, unstretched)
  const brief = { ...entry(0.5), coversUntil: 10_500 }
  const ends = [policy.dueAt(brief, 0), policy.freshUntil(brief, 0), policy.usableUntil(brief, 0)]
  t.strictSame(ends, [10_450, 10_500, 10_500])
})

t.test('changed options count for what is there already', async t => {
  const fresh = { freshForMs: 4_000, freshSpread: 0.5, freshForAtMostMs: 9_000, refreshAheadForMs: 90 }
  const next = { ...options, ...fresh, staleForMs: 700 }
  const policy = createFreshness(options, () => 3)
  policy.apply(next)
  const [at, longest] = [10_000 + 9_000 * 1.25, 9_000 * 1.5 + 90 + 700]
  t.strictSame([policy.dueAt(entry(0.5), 0), policy.freshUntil(entry(0.5), 0)], [at, at + 90])
  t.equal(policy.usableUntil(entry(0.5), 0), at + 90 + 700)
  t.strictSame([policy.leadMs, policy.longestUseMs, policy.maxStretch()], [90, longest, 9 / 4])
})

t.test('an entry is never due before its freshness has passed, and always before it is stale', async t => {
  const policy = createFreshness(options, unstretched)
  for (const jitter of [0, 0.3, 0.999]) {
    const due = policy.dueAt(entry(jitter), 0)
    t.ok(due >= 11_000 && due < policy.freshUntil(entry(jitter), 0), `jitter ${jitter}`)
  }
  t.equal(policy.freshUntil(entry(0), 0), 11_050)
  t.equal(policy.freshUntil(entry(0.5), 0), 11_150)
  t.equal(policy.usableUntil(entry(0.5), 0), 16_150)
  t.equal(policy.periodMs(), 1_100)
  const long = createFreshness({ ...options, freshSpread: 0, refreshAheadForMs: 60_000 }, unstretched)
  const lead = long.freshUntil(entry(0), 0) - long.dueAt(entry(0), 0)
  t.equal(lead, 100, 'a lead that is long for the freshness is cut, so that nothing is due all its life')
})

t.test('5,000 entries filled in one instant turn stale spread over the whole of the spread', async t => {
  const policy = createFreshness(options, unstretched)
  const ends = Array.from({ length: 5_000 }, (_, i) =>
    policy.freshUntil(entry(jitterOf(`cell ${i}`, 10_000)), 0),
  )
  const spread = Math.max(...ends) - Math.min(...ends)
  t.ok(spread >= 0.19 * options.freshForMs, `${spread} ms`)
  const tenths = Map.groupBy(ends, end => Math.floor((end - 11_050) / 20))
  t.equal(tenths.size, 10)
  for (const { length } of tenths.values())
    t.ok(length > 400 && length < 600, `${length} of 5,000 in a tenth`)
  t.equal(jitterOf('a', 1), jitterOf('a', 1), 'the same in every instance')
  t.not(jitterOf('a', 1), jitterOf('a', 2), 'and another for the next fetch')
})

t.test('stretched, everything is fresh longer, up to the most, and never past its last use', async t => {
  const untilAt = (stretch: number) => createFreshness(options, () => stretch).freshUntil(entry(0.5), 0)
  t.strictSame([1, 2, 3, 4, 100].map(untilAt), [11_150, 12_250, 13_350, 14_450, 14_450])
  for (const stretch of [1, 2, 1e9, Number.POSITIVE_INFINITY])
    for (const jitter of [0, 0.999_999]) {
      const used = createFreshness(options, () => stretch).usableUntil(entry(jitter), 0)
      t.ok(used <= 10_000 + longestUseMs(options), `stretch ${stretch}`)
    }
})

const runs = { ...options, settleForMs: 600_000, spreadOverMs: 1_800_000 }
const byRun = (recent: () => readonly Run[], stretch = unstretched) =>
  createFreshness({ ...runs, freshForAtMostMs: 12 * hour, freshSpread: 0 }, stretch, recent)
const run = (availableAt: number): Run => ({ availableAt, intervalMs: 6 * hour })

t.test('by run: fresh until a newer run has settled, then stale by jitter over the spread', async t => {
  const policy = byRun(() => [run(100 * hour)])
  const settled = 100 * hour + 600_000
  t.equal(policy.dueAt(entry(0, 99 * hour), 101 * hour), settled)
  t.equal(policy.dueAt(entry(0.5, 99 * hour), 101 * hour), settled + 900_000)
  t.equal(policy.dueAt(entry(0, 100 * hour + 300_000), 101 * hour), settled, 'fetched while it settled')
  t.equal(policy.dueAt(entry(0, settled), 101 * hour), settled + 6 * hour, 'good until the next run')
})

t.test('by run: a run that is late leaves everything fresh, but for no longer than the most', async t => {
  const policy = byRun(() => [run(100 * hour)])
  const at = (now: number) => freshnessOf(entry(0, 101 * hour), policy, now)
  t.strictSame([108 * hour, 113 * hour - 1, 113 * hour + 1_000].map(at), ['fresh', 'fresh', 'stale'])
})

// Runs are expected at 5, 11, 17 and 23 h, and settle for 10 minutes. Each row: what it is, the runs that are known at
// an instant (in hours), when the entry was fetched and its run, and whether it is older than a settled run.
const older: [string, number[], number, number, number | null, boolean][] = [
  ['just before the next run', [11, 5], 16.99, 5.5, 5, true],
  ['once the next run has appeared', [17, 11, 5], 17.01, 5.5, 5, true],
  ['once the next run has settled', [17, 11, 5], 17.2, 5.5, 5, true],
  ['of the run before, while the next one settles', [17, 11, 5], 17.1, 11.5, 11, false],
  ['by an instance that first read meta.json after both', [17], 17.01, 5.5, 5, true],
  ['by such an instance, without a note', [17], 17.01, 5.5, null, true],
  ['by such an instance, of the run before', [17], 17.01, 11.5, 11, false],
  ['by such an instance, of the run before, without a note', [17], 17.01, 11.5, null, false],
  [
    'by such an instance, fetched as the run before had settled, without a note',
    [17],
    17.01,
    67 / 6,
    null,
    false,
  ],
  ['fetched while the noted run settled, which this instance has yet to read', [5], 11.2, 11.1, 11, true],
  ['fetched while the noted run settled, which is no longer known', [17], 17.01, 11.1, 11, true],
  ['fetched before a run that was late', [17, 13, 5], 17.01, 11.5, 5, true],
  ['fetched before a run that was late, which this instance never saw', [17], 17.01, 11.5, 5, true],
  ['fetched after a run that was late', [17, 13, 5], 17.01, 13.5, 13, false],
  ['fetched after a run that was late, which this instance never saw', [17], 17.01, 13.5, 13, false],
  ['fetched before a run that was left out', [17, 5], 17.01, 11.5, 5, false],
  ['fetched as its own run had settled', [17, 11, 5], 17.01, 67 / 6, 11, false],
  ['noted half an interval before the run that this instance never saw', [17], 17.01, 11.5, 8, false],
  ['noted before the poll that read its run', [17, 11, 5], 17.01, 11.2, 5, false],
  ['by a clock a minute behind the provider’s', [11, 5], 11.1, 10.99, 11, false],
  ['by a clock a minute behind, once the run has settled', [11, 5], 11.2, 10.99, 11, true],
  ['of the newest run, while the next one is late', [11, 5], 19, 11.5, 11, false],
]
const notedAt = (fetchedAt: number, noted: number | null, jitter = 0) =>
  textEntry({ jitter, fetchedAt: fetchedAt * hour, run: noted === null ? null : noted * hour })

t.test('by run: an entry is stale and due once a run newer than its own has settled', async t => {
  for (const [what, known, now, fetchedAt, noted, isOlder] of older) {
    const policy = createFreshness(
      { ...runs, spreadOverMs: 0, freshForAtMostMs: 48 * hour, freshSpread: 0, staleForMs: 24 * hour },
      unstretched,
      () => known.map(at => run(at * hour)),
    )
    const fetched = notedAt(fetchedAt, noted)
    t.equal(freshnessOf(fetched, policy, now * hour), isOlder ? 'stale' : 'fresh', what)
    t.equal(now * hour >= policy.dueAt(fetched, now * hour), isOlder, `${what}: due if so`)
  }
  const late = byRun(() => [run(17 * hour)])
  t.equal(late.dueAt(notedAt(11.5, 5), 17.01 * hour), 11.5 * hour, 'at its fetch, and never before it')
})

t.test('by run: an entry that was due once stays due, whatever runs come and go', async t => {
  const available = [5, 11, 13, 17.5, 22, 29, 35, 41]
  for (const fetchedAt of [4.9, 5, 5.3, 11.05, 12, 13.2, 18])
    for (const noted of [null, ...available.filter(at => at <= fetchedAt)])
      for (const jitter of [0, 0.4, 0.99]) {
        let wasDue = false
        for (let now = fetchedAt; now < 47; now += 0.02) {
          const known = available.filter(at => at <= now).toReversed()
          const policy = byRun(() => known.map(at => run(at * hour)))
          const fetched = notedAt(fetchedAt, noted, jitter)
          if (known.length === 0) continue
          const isDue = now * hour >= policy.dueAt(fetched, now * hour)
          if (wasDue && !isDue)
            t.fail(`fetched ${fetchedAt}, noted ${noted}, jitter ${jitter}: fresh again at ${now}`)
          wasDue = isDue
        }
        t.ok(wasDue)
      }
})

t.test('by run: by age while no run is known, and stretched a run is skipped', async t => {
  const policy = byRun(() => [])
  t.equal(policy.dueAt(entry(0), 0), 11_000)
  t.equal(policy.periodMs(), 1_000)
  const known = () => [run(100 * hour)]
  t.equal(byRun(known).periodMs(), 6 * hour)
  const brief = createFreshness({ ...runs, freshForAtMostMs: 2 * hour, freshSpread: 0.2 }, unstretched, known)
  t.equal(brief.periodMs(), 2.2 * hour, 'no longer than anything is fresh')
  t.strictSame([byRun(known).maxStretch(), createFreshness(runs, unstretched, known).maxStretch()], [2, 1])
  const dueAt = (stretch: number) => byRun(known, () => stretch).dueAt(entry(0, 99 * hour), 101 * hour)
  t.strictSame([1, 1.5, 9].map(dueAt), [100 * hour + 600_000, 108 * hour, 111 * hour], 'up to the most')
})

t.test('a stretch is of the period of the upstream in use, whoever gave the entry', async t => {
  const recent = (upstream = 'by age') => (upstream === 'by age' ? [] : [run(100 * hour)])
  const options = { ...runs, freshForMs: hour, freshForAtMostMs: 24 * hour, freshSpread: 0 }
  const dueAt = (stretch: number) => {
    const policy = createFreshness(options, () => stretch, recent)
    return policy.dueAt({ ...entry(0, 101 * hour), upstream: 'by run' }, 101 * hour)
  }
  const ofItsRun = 106 * hour + 600_000
  t.strictSame([1, 3, 8].map(dueAt), [ofItsRun, ofItsRun, 109 * hour])
})

t.test('an entry from the future is stale and due, and not served beyond its end', async t => {
  const now = 50_000_000
  for (const recent of [[], [run(now - hour)]]) {
    const policy = createFreshness(options, unstretched, () => recent)
    const tolerated = entry(0, now + 300_000)
    t.equal(freshnessOf(tolerated, policy, now), 'fresh', 'the clock of another gateway')
    const ahead = entry(0, now + 300_001)
    t.equal(freshnessOf(ahead, policy, now), 'stale')
    t.ok(policy.dueAt(ahead, now) <= now)
    t.equal(policy.freshUntil(ahead, now), now)
    t.equal(freshnessOf({ ...ahead, coversUntil: now }, policy, now), 'expired')
    t.equal(freshnessOf(ahead, policy, now + 1), 'fresh', 'once the clock has come so far')
  }
})

t.test('the stretch is that of the given instant: the clock is not read for it', async t => {
  let reads = 0
  const clock = { now: () => ++reads }
  const policy = createFreshness({ ...options, freshSpread: 0 }, createStretch(() => 2, clock).current)
  t.equal(policy.freshUntil(entry(0), 10_000), 12_050)
  t.equal(reads, 0)
})
