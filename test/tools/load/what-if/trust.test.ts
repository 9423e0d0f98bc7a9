// Without it `whatif` and a real gateway could drift apart.

import t from 'tap'
import { hourMs, minuteMs } from '../../../../src/common/calendar.ts'
import { openFixture } from '../../../../tools/load/rehearsal/fixture.ts'
import { rehearse } from '../../../../tools/load/rehearsal/rehearsal.ts'
import { createRecorder } from '../../../../tools/load/replay/recorder.ts'
import { createProviderWeight } from '../../../../tools/load/report/provider-weight.ts'
import { settingCases } from '../../../../tools/load/setting-grid.ts'
import { readTraffic } from '../../../../tools/load/traffic/read-traffic.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import { constantsPreload, useConstants } from '../../../support/constants.ts'
import { cleanEnv } from '../../../support/process.ts'
import { simulateOn, trafficOf } from './simulate-on.ts'

const sample = new URL('../../../../samples/weekday.ndjson.gz', import.meta.url).pathname
// In the evening in Dhaka: a run of the model becomes available, and demand is high. Processes are moved from second to second,
// so an hour with much demand shows as much in a third of the time.
const from = 18 * hourMs + 38 * minuteMs
const span = 9 * minuteMs

const noBudget = 'provider.budget.perMinute=null provider.budget.perHour=null provider.budget.perDay=null'
// The jitter follows from the provider's name, and so from its port. With times as short as these five to twenty requests meet stale
// weather on any port; by run, spread over the usual half-hour, it would be a handful.
const shortSpread = { ABOHAWA_TEST_CACHE__SPREAD_OVER: '2m' }
useConstants({ ...process.env, ...shortSpread })
const cases = [
  `cache.freshness=age cache.freshFor=2m ${noBudget}`,
  `cache.freshness=run ${noBudget}`,
  'cache.freshness=age cache.freshFor=2m provider.budget.perMinute=18 provider.budget.perDay=120',
]

const readHours = async (): Promise<TrafficRequest[]> => {
  const all = (await Array.fromAsync(readTraffic([sample]).batches())).flat()
  const begin = (all[0]?.at ?? 0) + from
  return all.filter(({ at }) => at >= begin && at < begin + span)
}

type Figures = Readonly<Record<'hits' | 'stale' | 'misses' | 'failed' | 'weight', number>>

const rehearsed = async (
  requests: readonly TrafficRequest[],
  env: Readonly<Record<string, string>>,
): Promise<{ figures: Figures; baseUrl: string }> => {
  await using fixture = await openFixture({
    start: requests[0]?.at ?? 0,
    files: [],
    env: cleanEnv({ ...env, ...shortSpread, NODE_OPTIONS: constantsPreload(shortSpread) ?? '' }),
    keys: [...new Set(requests.flatMap(({ key }) => key ?? []))],
    substitutes: 0,
    tier: undefined,
    provider: { limits: 'none', runs: 'ecmwf', seed: 1 },
  })
  const recorder = createRecorder(300)
  const spending = createProviderWeight()
  const { signal } = new AbortController()
  await rehearse({ requests, stepMs: 1, onProgress: () => {}, signal }, { fixture, recorder, spending })
  const { statuses, outcomes } = recorder.form().counts
  const { hit = 0, stale = 0, miss = 0 } = outcomes
  const { weight } = spending.total
  const figures = { hits: hit, stale, misses: miss, failed: statuses['500'] ?? 0, weight }
  return { figures, baseUrl: fixture.config.provider.baseUrl }
}

const largestDifference = 0.01

t.test('real processes do what whatif says, to within 1 %', async t => {
  const requests = await readHours()
  t.ok(requests.length > 200, `${requests.length} requests`)
  const traffic = await trafficOf(requests)
  const found: Figures[] = []
  for (const { name, env, config } of settingCases({ case: cases }, { files: [], env: {} })) {
    const real = await rehearsed(requests, env)
    const provider = { ...config.provider, baseUrl: real.baseUrl }
    const said = await simulateOn({ ...config, provider }, traffic)
    const { stale, misses, failed } = said
    const hits = said.hits.memory + said.hits.shared
    const figures: Figures = { hits, stale, misses, failed, weight: said.provider.weight }
    found.push(figures)
    for (const [what, value] of Object.entries(real.figures)) {
      const own = figures[what as keyof Figures]
      const difference = value === own ? 0 : Math.abs(own - value) / Math.max(value, 1)
      t.ok(difference <= largestDifference, `${name}: ${what} ${own} of whatif, ${value} of real processes`)
    }
    t.comment(`${name}: ${JSON.stringify({ whatif: figures, real: real.figures })}`)
  }
  const [byAge, byRun, onBudget] = found
  t.ok((byAge?.stale ?? 0) > 10 && (byRun?.stale ?? 0) > 3, 'weather turned stale, by age and by run')
  t.ok((onBudget?.failed ?? 0) > 80, 'the budget was spent')
})
