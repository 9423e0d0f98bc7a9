// Model runs as the provider publishes them, and as the gateway assumes them while the provider is unreachable.

import t from 'tap'
import type { ModelRun } from '../../src/provider/protocol.ts'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { createRunWatch } from '../../src/provider/runs.ts'
import { startHostileProvider } from '../support/hostile-provider.ts'
import { manualClock } from '../support/manual-clock.ts'
import { openMeteo } from '../support/open-meteo.ts'
import { startProvider } from '../support/provider-process.ts'

const hour = 3_600_000
const simulator = await startProvider(t, ['--runs', 'ecmwf'])

const setUp = (t: { teardown(fn: () => unknown): void }, model = 'ecmwf_ifs', baseUrl = simulator.url) => {
  const clock = manualClock()
  const reported: string[] = []
  const refused: string[] = []
  const call = createProviderCall(
    {
      baseUrl,
      apiKey: null,
      connectTimeoutMs: 1_000,
      timeoutMs: 1_000,
      bodyTimeoutMs: 1_000,
      totalTimeoutMs: 2_000,
      maxConcurrent: 1,
    },
    { protocol: openMeteo, clock },
  )
  const watch = createRunWatch(
    { model, pollEveryMs: 300_000 },
    {
      call,
      protocol: openMeteo,
      clock,
      observer: {
        newRun: ({ availableAt }: ModelRun) => reported.push(new Date(availableAt).toISOString()),
        runsUnknown: reason => reported.push(reason),
        refused: why => refused.push(why),
      },
    },
  )
  t.teardown(async () => {
    watch.close()
    await call.close()
  })
  const at = async (instant: string) => {
    clock.set(instant)
    await simulator.steer({ now: instant })
  }
  return { watch, clock, reported, refused, at }
}

t.test('reports the newest run once, with the time it became available', async t => {
  const { watch, reported, at } = setUp(t)
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
  t.strictSame(reported, ['2026-11-21T06:30:00.000Z', '2026-11-21T12:30:00.000Z'])
})

t.test('a server that reports the former run again is ignored', async t => {
  const { watch, at } = setUp(t)
  await at('2026-11-21T12:31:00Z')
  await watch.poll()
  await simulator.steer({ now: '2026-11-21T12:29:00Z' })
  await watch.poll()
  t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T12:30:00Z'))
})

t.test('while runs can’t be read they are assumed at the same interval', async t => {
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

t.test('runs are assumed in time where the clock was set back after the last one was read', async t => {
  const { watch, clock, at } = setUp(t)
  await at('2026-11-21T08:00:00Z')
  clock.advance(6 * hour)
  await watch.poll()
  const availableAt = watch.newest()?.availableAt ?? 0
  clock.set(availableAt + 6 * hour - 1)
  t.equal(watch.newest()?.availableAt, availableAt)
  clock.advance(1)
  t.equal(watch.newest()?.availableAt, availableAt + 6 * hour)
})

t.test('the runs before the newest are known, with those assumed while none could be read', async t => {
  const { watch, clock, at } = setUp(t)
  const recent = () =>
    watch.recent().map(({ availableAt }) => new Date(availableAt).toISOString().slice(5, 16))
  t.strictSame(recent(), [])
  await at('2026-11-21T08:00:00Z')
  await watch.poll()
  t.strictSame(recent(), ['11-21T06:30'])
  clock.set('2026-11-22T01:00:00Z')
  t.strictSame(recent(), ['11-22T00:30', '11-21T18:30', '11-21T12:30', '11-21T06:30'])
  t.equal(watch.recent(), watch.recent(), 'worked out once')
  await at('2026-11-22T01:00:00Z')
  await watch.poll()
  t.strictSame(recent(), ['11-22T00:30', '11-21T18:30', '11-21T12:30', '11-21T06:30'])
  await at('2026-11-22T06:31:00Z')
  await watch.poll()
  t.equal(recent().length, 5)
  clock.set('2027-02-22T06:31:00Z')
  t.equal(recent().length, 32, 'and no more than are of use')
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

t.test('an unreadable run is reported once in a sentence, and a run of the future is refused', async t => {
  const { watch, reported } = setUp(t, 'no_such_model')
  await watch.poll()
  await watch.poll()
  t.equal(watch.newest(), undefined)
  t.equal(reported.length, 1)
  t.match(reported[0], /^the provider answered 404/)

  const gone = setUp(t, 'ecmwf_ifs', 'http://127.0.0.1:9')
  await gone.watch.poll()
  t.match(gone.reported, [/^no connection to the provider: ECONNREFUSED$/])

  const early = setUp(t)
  await early.at('2026-11-21T12:31:00Z')
  early.clock.set('2026-11-21T12:00:00Z')
  await early.watch.poll()
  t.equal(early.watch.newest(), undefined)
  t.match(early.reported, [/^meta\.json names a run that is not available yet$/])
})

const noon = Date.parse('2026-11-21T06:00:00Z') / 1000
const good = {
  last_run_initialisation_time: noon - 8 * 3600,
  last_run_availability_time: noon - 3600,
  update_interval_seconds: 6 * 3600,
}
const absurd: [string, string | object, string, RegExp][] = [
  [
    'of 20 MB',
    `{"crs_wkt":"${'x'.repeat(20 << 20)}`,
    'too_large',
    /^the provider's body is longer than 65536 bytes$/,
  ],
  ['of lists in each other', '['.repeat(60_000), 'damaged', /^meta\.json is not complete JSON$/],
  ['that is cut off', '{"last_run', 'damaged', /^meta\.json is not complete JSON$/],
  ['of nothing', 'null', 'wrong_shape', /^meta\.json is null, expected an object$/],
  ['of a text', `"${'x'.repeat(9_000)}"`, 'wrong_shape', /^meta\.json is x{80}…, expected an object$/],
  [
    'without an instant',
    {},
    'wrong_shape',
    /^meta\.json: last_run_initialisation_time is nothing, expected a number/,
  ],
  [
    'with an instant as text',
    { ...good, last_run_availability_time: 'now' },
    'wrong_shape',
    /availability_time is now, expected a number of seconds$/,
  ],
  [
    'with a run of 1970',
    { ...good, last_run_initialisation_time: 1, last_run_availability_time: 2 },
    'wrong_run',
    /availability_time is 2, expected one within the last 30 days$/,
  ],
  [
    'with a run before all time',
    { ...good, last_run_availability_time: -1e308 },
    'wrong_run',
    /is -1e\+308, expected one within the last 30 days$/,
  ],
  [
    'with a run that began before all time',
    { ...good, last_run_initialisation_time: -1e300 },
    'wrong_run',
    /initialisation_time is -1e\+300, expected one within the 7 days before 1795237200$/,
  ],
  [
    'with a run that is there before it began',
    { ...good, last_run_initialisation_time: noon },
    'wrong_run',
    /initialisation_time is 1795240800, expected one within/,
  ],
  [
    'with a run of all future',
    { ...good, last_run_availability_time: 1e308 },
    'wrong_run',
    /^meta\.json names a run that is not available yet$/,
  ],
  [
    'with runs every moment',
    { ...good, update_interval_seconds: 1e-300 },
    'wrong_run',
    /update_interval_seconds is 1e-300, expected 600 to 604800$/,
  ],
  [
    'with runs every minute',
    { ...good, update_interval_seconds: 60 },
    'wrong_run',
    /is 60, expected 600 to 604800$/,
  ],
  [
    'with no next run',
    { ...good, update_interval_seconds: 1e300 },
    'wrong_run',
    /is 1e\+300, expected 600 to 604800$/,
  ],
]

t.test('an implausible meta.json is reported in a sentence, counted, and changes nothing', async t => {
  let body: string | object = good
  const hostile = await startHostileProvider(t, '', {
    meta: ({ response }) => response.end(typeof body === 'string' ? body : JSON.stringify(body)),
  })
  for (const [what, meta, why, message] of absurd) {
    const { watch, reported, refused } = setUp(t, 'ecmwf_ifs', hostile.url('meta'))
    body = good
    await watch.poll()
    const known = watch.newest()
    t.equal(known?.availableAt, good.last_run_availability_time * 1000)
    body = meta
    await watch.poll()
    t.match(reported[1], message, what)
    t.strictSame(refused, [why], what)
    t.strictSame(watch.newest(), known)
  }
})

t.test('a run that was late by the provider’s own word, and never came, was not there', async t => {
  let available = noon - 3600
  const hostile = await startHostileProvider(t, '', {
    meta: ({ response }) => response.end(JSON.stringify({ ...good, last_run_availability_time: available })),
  })
  const { watch, clock } = setUp(t, 'ecmwf_ifs', hostile.url('meta'))
  for (let minutes = 0; minutes <= 11 * 60; minutes += 15) {
    clock.set(noon * 1000 + minutes * 60_000)
    await watch.poll()
  }
  available += 12 * 3600
  clock.set(available * 1000)
  await watch.poll()
  t.strictSame(
    watch.recent().map(run => (run.availableAt / 1000 - available) / 3600),
    [0, -12],
  )
})
