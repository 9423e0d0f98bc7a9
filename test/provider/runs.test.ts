// Model runs as the provider publishes them, and as they are assumed while it can't be read.

import t from 'tap'
import { createExchange } from '../../src/provider/exchange.ts'
import { createRunWatch, type ModelRun } from '../../src/provider/runs.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'

const hour = 3_600_000
const simulator = await startProvider(t, ['--runs', 'ecmwf'])

const setUp = (t: { teardown(fn: () => unknown): void }, model = 'ecmwf_ifs', baseUrl = simulator.url) => {
  const clock = manualClock()
  const told: string[] = []
  const exchange = createExchange(
    {
      baseUrl,
      apiKey: null,
      connectTimeoutMs: 1_000,
      timeoutMs: 1_000,
      bodyTimeoutMs: 1_000,
      totalTimeoutMs: 2_000,
      maxConcurrent: 1,
    },
    clock,
  )
  const watch = createRunWatch(
    { model, pollEveryMs: 300_000 },
    {
      exchange,
      clock,
      observer: {
        newRun: ({ availableAt }: ModelRun) => told.push(new Date(availableAt).toISOString()),
        runsUnknown: reason => told.push(reason),
      },
    },
  )
  t.teardown(async () => {
    watch.close()
    await exchange.close()
  })
  const at = async (instant: string) => {
    clock.set(instant)
    await simulator.steer({ now: instant })
  }
  return { watch, clock, told, at }
}

t.test('the newest run is known with the time it became available, and told once', async t => {
  const { watch, told, at } = setUp(t)
  t.equal(watch.newest(), undefined)
  await at('2026-11-21T08:00:00Z')
  await watch.poll()
  await watch.poll()
  t.match(watch.newest(), {
    initialisedAt: Date.parse('2026-11-21T00:00:00Z'),
    availableAt: Date.parse('2026-11-21T06:30:00Z'),
    intervalMs: 6 * hour,
  })
  await at('2026-11-21T12:31:00Z')
  await watch.poll()
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T12:30:00Z'))
  t.strictSame(told, ['2026-11-21T06:30:00.000Z', '2026-11-21T12:30:00.000Z'])
})

t.test('a server that names the former run once more is not followed back', async t => {
  const { watch, at } = setUp(t)
  await at('2026-11-21T12:31:00Z')
  await watch.poll()
  await simulator.steer({ now: '2026-11-21T12:29:00Z' })
  await watch.poll()
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T12:30:00Z'))
})

t.test('while runs can’t be read they are taken to come as often as before', async t => {
  const { watch, clock, at } = setUp(t)
  await at('2026-11-21T08:00:00Z')
  await watch.poll()
  clock.set('2026-11-21T08:10:00Z')
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T06:30:00Z'))
  clock.set('2026-11-21T12:29:59Z')
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T06:30:00Z'))
  clock.set('2026-11-21T12:30:00Z')
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T12:30:00Z'))
  clock.set('2026-11-22T01:00:00Z')
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-22T00:30:00Z'))
})

t.test('a run that is late by the provider’s own word is not assumed', async t => {
  const { watch, clock, at } = setUp(t)
  await at('2026-11-21T08:00:00Z')
  await watch.poll()
  clock.set('2026-11-21T14:00:00Z')
  await simulator.steer({ now: '2026-11-21T12:00:00Z' })
  await watch.poll()
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T06:30:00Z'))
})

t.test('what can’t be read is told once in a sentence, and a run of the future is not believed', async t => {
  const { watch, told } = setUp(t, 'no_such_model')
  await watch.poll()
  await watch.poll()
  t.equal(watch.newest(), undefined)
  t.equal(told.length, 1)
  t.match(told[0], /^the provider answered 404/)

  const gone = setUp(t, 'ecmwf_ifs', 'http://127.0.0.1:9')
  await gone.watch.poll()
  t.match(gone.told, [/^no connection to the provider: ECONNREFUSED$/])

  const early = setUp(t)
  await early.at('2026-11-21T12:31:00Z')
  early.clock.set('2026-11-21T12:00:00Z')
  await early.watch.poll()
  t.equal(early.watch.newest(), undefined)
  t.match(early.told, [/^meta\.json names a run that is not available yet$/])
})
