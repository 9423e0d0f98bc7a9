// Without it the cost of a run for the gateway would miss processes, or include the warm-up.

import t from 'tap'
import { createGatewayFigures } from '../../../../tools/load/replay/gateway-figures.ts'
import { createLoad } from '../../../../tools/load/replay/load.ts'
import type { Step } from '../../../../tools/load/report/result.ts'

type Process = { cpu: number; memory: number; delay?: number; requests?: number }

/** As the process in front of workers writes it: its own samples have no label `worker`. */
const exposition = (front: Process, workers: readonly Process[], used: number): string =>
  [front, ...workers]
    .flatMap(({ cpu, memory, delay = 0.012, requests }, i) => {
      const [only, more] = i === 0 ? ['', ''] : [`{worker="${i}"}`, `worker="${i}",`]
      return [
        `process_cpu_seconds_total${only} ${cpu}`,
        `process_resident_memory_bytes${only} ${memory}`,
        `nodejs_eventloop_lag_p50_seconds${only} 0.011`,
        `nodejs_eventloop_lag_p99_seconds${only} ${delay}`,
        `abohawa_provider_request_duration_seconds_count{${more}outcome="ok"} ${requests ?? 0}`,
        `abohawa_provider_request_duration_seconds_count{${more}outcome="provider_not_sent"} 99`,
        `abohawa_provider_budget_used{${more}window="day"} ${i === 0 ? 0 : used - (i - 1)}`,
        `abohawa_provider_budget_limit{${more}window="day"} 10000`,
      ]
    })
    .join('\n')

const figuresOf = (texts: readonly string[], begin = '2026-11-21T08:00:00Z') => {
  let read = 0
  return createGatewayFigures(
    async () => texts[read++] ?? '',
    () => read * 5,
    { now: () => Date.parse(begin) + read * 5_000 },
  )
}

t.test('all processes of a gateway are added up, also one that is replaced', async t => {
  const one = (cpu: number, memory: number, requests = 0, delay = 0.012) => ({ cpu, memory, requests, delay })
  const figures = figuresOf([
    exposition(one(1, 50), [one(10, 100, 7), one(20, 200)], 100),
    exposition(one(1.5, 50), [one(12, 110, 9), one(21, 210, 0, 0.05)], 130),
    // The second was replaced: it counts from 0 again.
    exposition(one(1.5, 50), [one(13, 120, 10), one(0.5, 90, 4)], 150),
  ])
  for (let i = 0; i < 3; i += 1) await figures.read()
  t.strictSame(figures.gateway, { cpuSeconds: 5, memoryBytes: 370, loopDelayP50: 1, loopDelayP99: 40 })
  t.has(figures.provider, { requests: 7, weight: 50, windows: [{ span: 'day', limit: 10_000, most: 150 }] })
})

t.test('weight that is given back is of the step that was charged, and a new day begins at 0', async t => {
  const used = (...weights: readonly number[]) =>
    weights.map(weight => exposition({ cpu: 1, memory: 1 }, [{ cpu: 1, memory: 1 }], weight))
  const steps = Array.from({ length: 4 }, (_, i) => ({ at: i * 5 })) as unknown as Step[]
  const weightsOf = async (figures: ReturnType<typeof figuresOf>, readings: number) => {
    for (let i = 0; i < readings; i += 1) await figures.read()
    const inSteps = figures.withWeights(steps, 5).map(({ weight }) => weight)
    return [figures.provider?.weight, ...inSteps]
  }
  const refunded = used(5_000, 5_192, 5_001, 5_002)
  t.strictSame(await weightsOf(figuresOf(refunded), 4), [2, 0, 1, 0, 1])
  t.strictSame(await weightsOf(figuresOf(used(5_192, 5_001)), 2), [0, 0, 0, 0, 0], 'charged before')
  // A clock that is right, behind and ahead.
  for (const begin of ['23:59:48', '23:59:43', '23:59:54']) {
    const midnight = figuresOf(used(9_000, 9_010, 4, 5), `2026-11-21T${begin}Z`)
    t.strictSame(await weightsOf(midnight, 4), [15, 0, 10, 4, 1], begin)
  }
  const late = figuresOf(used(0, 0, 0, 0, 500))
  t.strictSame(await weightsOf(late, 5), [500, 0, 0, 0, 500], 'the last reading comes after the last step')
})

t.test('what was before the warm-up ended is forgotten', async t => {
  const one = (cpu: number, memory: number, requests: number) =>
    exposition({ cpu, memory, requests, delay: 0.01 + memory / 1e6 }, [], 0)
  const figures = figuresOf([one(10, 900_000, 5), one(14, 800_000, 50), one(15, 1_000, 60)])
  await figures.read()
  await figures.begin()
  t.equal(figures.gateway, null)
  await figures.read()
  t.match(figures.gateway, { cpuSeconds: 1, memoryBytes: 1_000 })
  t.match(figures.provider, { requests: 10 })
  t.ok((figures.gateway?.loopDelayP99 ?? 0) < 2)
})

t.test('the generator does not judge itself by its warm-up', async t => {
  const load = createLoad()
  load.due(500)
  load.begin()
  for (let i = 0; i < 100; i += 1) load.due(0.1)
  load.end()
  t.ok(load.form().lateP99 < 1, `${load.form().lateP99} ms late`)
})
