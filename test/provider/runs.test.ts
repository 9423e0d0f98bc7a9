// Without it weather could stay fresh after a newer model run, or turn stale for a run that is none.

import t from 'tap'
import type { ModelRun } from '../../src/provider/protocol.ts'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { createRunWatch } from '../../src/provider/runs.ts'
import { startHostileProvider } from '../support/hostile-provider.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import type { Teardown } from '../support/teardown.ts'
import { callOptions, openMeteo } from './provider-set-up.ts'

const hour = 3_600_000
const simulator = await startProvider(t, ['--runs', 'ecmwf'])

const setUp = (t: Teardown, model = 'ecmwf_ifs', baseUrl = simulator.url) => {
  const clock = manualClock()
  const reported: string[] = []
  const refused: string[] = []
  const call = createProviderCall(callOptions(baseUrl), { protocol: openMeteo, clock })
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
  /** Reads the run that the provider has at an instant. */
  const pollAt = async (instant: string) => {
    await at(instant)
    await watch.poll()
  }
  const newest = () => {
    const run = watch.newest()
    return run && new Date(run.availableAt).toISOString().slice(5, 16)
  }
  return { watch, clock, reported, refused, at, pollAt, newest }
}

t.test('reports the newest run once, and ignores a server that reports the previous one again', async t => {
  const { watch, reported, pollAt, newest } = setUp(t)
  t.equal(watch.newest(), undefined)
  await pollAt('2026-11-21T08:00:00Z')
  await watch.poll()
  t.match(watch.newest(), {
    initialisedAt: Date.parse('2026-11-21T00:00:00Z'),
    availableAt: Date.parse('2026-11-21T06:30:00Z'),
    intervalMs: 6 * hour,
  })
  await pollAt('2026-11-21T12:31:00Z')
  t.equal(newest(), '11-21T12:30')
  await simulator.steer({ now: '2026-11-21T12:29:00Z' })
  await watch.poll()
  t.equal(newest(), '11-21T12:30')
  t.strictSame(reported, ['2026-11-21T06:30:00.000Z', '2026-11-21T12:30:00.000Z'])
})

t.test('while runs can’t be read they are assumed at the same interval', async t => {
  const { watch, clock, pollAt, newest } = setUp(t)
  await pollAt('2026-11-21T08:00:00Z')
  for (const [instant, expected] of [
    ['2026-11-21T08:10:00Z', '11-21T06:30'],
    ['2026-11-21T12:29:59Z', '11-21T06:30'],
    ['2026-11-21T12:30:00Z', '11-21T12:30'],
    ['2026-11-22T01:00:00Z', '11-22T00:30'],
  ] as const) {
    clock.set(instant)
    t.equal(newest(), expected, instant)
  }
  const last = { initialisedAt: Date.parse('2026-11-21T18:00:00Z'), intervalMs: 6 * hour }
  t.match(watch.newest(), last, 'as old as it would be')
  // Unless a run is late by the provider’s own word.
  clock.set('2026-11-21T14:00:00Z')
  await simulator.steer({ now: '2026-11-21T12:00:00Z' })
  await watch.poll()
  t.equal(newest(), '11-21T06:30')
  // Which holds for three polls and a minute.
  clock.set('2026-11-21T14:16:00Z')
  t.equal(newest(), '11-21T06:30')
  clock.advance(1)
  t.equal(newest(), '11-21T12:30')
})

t.test('the first poll that may read a newer run is the first when the next is due', async t => {
  const { watch, clock, pollAt } = setUp(t)
  const nextAt = () => new Date(watch.nextAt()).toISOString().slice(11, 16)
  t.equal(nextAt(), '06:00')
  clock.set('2026-11-21T06:01:00Z')
  t.equal(nextAt(), '06:05')
  await pollAt('2026-11-21T08:01:00Z')
  t.equal(nextAt(), '12:30')
  clock.set('2026-11-21T12:41:00Z')
  t.equal(nextAt(), '12:45')
})

t.test('a run that comes early or late takes the place of the one that was assumed', async t => {
  for (const [available, polledAt] of [
    ['2026-11-21T16:50:00Z', '2026-11-21T17:05:00Z'],
    ['2026-11-21T19:50:00Z', '2026-11-21T20:05:00Z'],
  ] as const) {
    let body = there(noon - 3600)
    const hostile = await startHostileProvider(t, '', {
      meta: ({ response }) => response.end(JSON.stringify(body)),
    })
    const { watch, clock } = setUp(t, 'ecmwf_ifs', hostile.url('meta'))
    await watch.poll()
    clock.set(polledAt)
    t.equal(watch.newest()?.availableAt, Date.parse('2026-11-21T17:00:00Z'))
    body = there(Date.parse(available) / 1000)
    await watch.poll()
    t.strictSame(
      watch.recent().map(run => new Date(run.availableAt).toISOString().slice(11, 16)),
      [available.slice(11, 16), '11:00', '05:00'],
    )
  }
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
  const { watch, clock, pollAt } = setUp(t)
  const recent = () =>
    watch.recent().map(({ availableAt }) => new Date(availableAt).toISOString().slice(5, 16))
  t.strictSame(recent(), [])
  await pollAt('2026-11-21T08:00:00Z')
  t.strictSame(recent(), ['11-21T06:30'])
  const assumed = ['11-22T00:30', '11-21T18:30', '11-21T12:30', '11-21T06:30']
  clock.set('2026-11-22T01:00:00Z')
  t.strictSame(recent(), assumed)
  t.equal(watch.recent(), watch.recent(), 'worked out once')
  await pollAt('2026-11-22T01:00:00Z')
  t.strictSame(recent(), assumed)
  await pollAt('2026-11-22T06:31:00Z')
  t.equal(recent().length, 5)
  clock.set('2027-02-22T06:31:00Z')
  t.equal(recent().length, 32, 'and no more than are of use')
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
const began = (last_run_initialisation_time: number) => ({ ...good, last_run_initialisation_time })
const there = (last_run_availability_time: unknown) => ({ ...good, last_run_availability_time })
const every = (update_interval_seconds: number) => ({ ...good, update_interval_seconds })
// The file, the reason that is counted, and the sentence.
const absurd: [string | object, string, RegExp][] = [
  [`{"crs_wkt":"${'x'.repeat(20 << 20)}`, 'too_large', /^the provider's body is longer than 65536 bytes$/],
  ['['.repeat(60_000), 'damaged', /^meta\.json is not complete JSON$/],
  ['{"last_run', 'damaged', /^meta\.json is not complete JSON$/],
  ['null', 'wrong_shape', /^meta\.json is null, expected an object$/],
  [`"${'x'.repeat(9_000)}"`, 'wrong_shape', /^meta\.json is x{80}…, expected an object$/],
  [{}, 'wrong_shape', /^meta\.json: last_run_initialisation_time is nothing, expected a number/],
  [there('now'), 'wrong_shape', /availability_time is now, expected a number of seconds$/],
  [there(2), 'wrong_run', /availability_time is 2, expected one within the last 30 days$/],
  [there(-1e308), 'wrong_run', /is -1e\+308, expected one within the last 30 days$/],
  [there(1e308), 'wrong_run', /^meta\.json names a run that is not available yet$/],
  [began(-1e300), 'wrong_run', /time is -1e\+300, expected one within the 7 days before 1795237200$/],
  [began(noon), 'wrong_run', /initialisation_time is 1795240800, expected one within/],
  [every(1e-300), 'wrong_run', /update_interval_seconds is 1e-300, expected 600 to 604800$/],
  [every(60), 'wrong_run', /is 60, expected 600 to 604800$/],
  [every(1e300), 'wrong_run', /is 1e\+300, expected 600 to 604800$/],
]

t.test('an implausible meta.json is reported in a sentence, counted, and changes nothing', async t => {
  let body: string | object = good
  const hostile = await startHostileProvider(t, '', {
    meta: ({ response }) => response.end(typeof body === 'string' ? body : JSON.stringify(body)),
  })
  for (const [meta, why, message] of absurd) {
    const { watch, reported, refused } = setUp(t, 'ecmwf_ifs', hostile.url('meta'))
    body = good
    await watch.poll()
    const known = watch.newest()
    t.equal(known?.availableAt, good.last_run_availability_time * 1000)
    body = meta
    await watch.poll()
    t.match(reported[1], message)
    t.strictSame(refused, [why], String(message))
    t.strictSame(watch.newest(), known)
  }
  const { watch, reported } = setUp(t, 'ecmwf_ifs', hostile.url('meta'))
  for (const each of ['{', '{', good, '{']) {
    body = each
    await watch.poll()
  }
  t.equal(reported.length, 3, 'and reported again after it was read')
})

t.test('a run is believed up to the edges of what is plausible', async t => {
  const day = 86_400
  const longAgo = { last_run_initialisation_time: noon - 30 * day - 3600 }
  for (const [edge, beyond] of [
    [there(noon + 60), there(noon + 61)],
    [
      { ...there(noon - 30 * day), ...longAgo },
      { ...there(noon - 30 * day - 1), ...longAgo },
    ],
    [began(noon - 3600), began(noon - 3599)],
    [began(noon - 3600 - 7 * day), began(noon - 3601 - 7 * day)],
    [every(600), every(599)],
    [every(604_800), every(604_801)],
  ] as const) {
    const decode = (meta: object) => openMeteo.runs.decode(JSON.stringify(meta), noon * 1000)
    t.match(decode(edge), { availableAt: Number })
    t.throws(() => decode(beyond), { code: 'provider_garbled' }, JSON.stringify(beyond))
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
