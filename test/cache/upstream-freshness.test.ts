// Without it weather could be stretched for a demand that is not there, or not at all.

import t from 'tap'
import { createUpstreamFreshness } from '../../src/cache/upstream-freshness.ts'
import type { Accounts } from '../../src/provider/accounts.ts'
import { manualClock } from '../support/manual-clock.ts'

const hour = 3_600_000
const cache = {
  ...{ freshForMs: hour, freshSpread: 0, freshForAtMostMs: 4 * hour, refreshAheadForMs: 60_000 },
  ...{ staleForMs: 24 * hour, settleForMs: 0, spreadOverMs: 0 },
}

t.test('demand is the weight of all cells in each period of a day, and stretches up to the most', async t => {
  const clock = manualClock()
  let [stretch, cells] = [1, 10]
  const demands: number[] = []
  const budget = {
    stretch: (demand: number): number => {
      demands.push(demand)
      return stretch
    },
  }
  const first = { name: undefined, account: { budget, protocol: { weightPerCell: 3 }, runs: undefined } }
  const accounts = { all: [first], next: () => ({ upstream: undefined }) } as unknown as Accounts
  const config = { cache } as unknown as Parameters<typeof createUpstreamFreshness>[0]
  const freshness = createUpstreamFreshness(config, accounts, () => cells, clock)
  t.equal(freshness.demandPerDay(), 10 * 3 * 24)
  t.equal(freshness.stretch.current(), 1)
  cells = 20
  stretch = 2
  clock.advance(999)
  t.equal(freshness.stretch.current(), 1, 'computed at most once a second')
  clock.advance(1)
  t.equal(freshness.stretch.current(), 2)
  stretch = 100
  clock.advance(1_000)
  t.equal(freshness.stretch.current(), 4)
  stretch = 3
  freshness.stretch.renew()
  t.equal(freshness.stretch.current(), 3, 'but for a change of the settings')
  t.strictSame(demands, [720, 1_440, 1_440, 1_440])
})

t.test(
  'the runs of the upstream that gave an entry decide on it, and without a name those of the refresher',
  async t => {
    const clock = manualClock()
    const asked: (string | undefined)[] = []
    const account = { budget: { stretch: () => 1 }, protocol: { weightPerCell: 1 }, runs: undefined }
    const all = ['one', 'two'].map(name => ({ name, account }))
    const runsOf = (name: string | undefined) => {
      asked.push(name)
      return []
    }
    const accounts = { all, next: () => ({ upstream: all[1] }), runsOf } as unknown as Accounts
    const config = { cache } as unknown as Parameters<typeof createUpstreamFreshness>[0]
    const { policy, stretch } = createUpstreamFreshness(config, accounts, () => 1, clock)
    stretch.current()
    asked.length = 0
    for (const upstream of ['one', 'two', undefined])
      policy.dueAt(
        { fetchedAt: clock.now(), jitter: 0, upstream, coversUntil: undefined } as never,
        clock.now(),
      )
    t.strictSame(asked, ['one', 'two', 'two'])
  },
)
