// Without it tests could steer the simulated provider and get something else.

import t from 'tap'
import { startSimulator } from '../../../tools/provider/simulator.ts'
import { manualClock } from '../../support/manual-clock.ts'
import { until } from '../../support/until.ts'
import { dhaka, simulate, three } from './simulated.ts'

t.test('it lists the last 100 requests, decoded, with their status', async t => {
  const { send, state } = await simulate(t)
  await send(three('hourly=rain'))
  await send(dhaka('hourly=nonsense'))
  await send('/v1/forecast?latitude=1&latitude=2&longitude=3,4&daily=sunrise')
  await send('/data/ecmwf_ifs/static/meta.json')
  await send('/nowhere')
  const call = (latitude: string, longitude: string, more: object, status: number) => {
    const query = { latitude, longitude, ...more }
    return { method: 'GET', latitudes: latitude.split(',').length, query, status }
  }
  const timezone = 'Asia/Dhaka'
  const places = ['23.8103,22.3569,24.8949', '90.4125,91.7832,91.8687'] as const
  t.strictSame(await state(), {
    ...{ calls: 3, points: 6, weight: 6, refused: 0, inFlight: 0, maxInFlight: 1 },
    ...{ fault: 'none', latencyMs: 0, now: '2026-11-21T06:00:00.000Z' },
    requests: [
      call(...places, { timezone, hourly: 'rain' }, 200),
      call('23.8103', '90.4125', { timezone, hourly: 'nonsense' }, 400),
      call('1,2', '3,4', { daily: 'sunrise' }, 200),
    ],
  })
  for (let i = 0; i < 103; i++) await send(`/v1/forecast?x=${i}`)
  const { calls, requests } = await state()
  t.strictSame([calls, requests.length, requests[0].query.x, requests[99].query.x], [106, 100, '3', '102'])
})

t.test('a POST answers as a GET, and says what it changed', async t => {
  const { steer, state } = await simulate(t)
  const change = { fault: 'gaps', times: 3, latencyMs: 5, now: '2026-11-21T12:00:00+06:00' }
  const { status, body } = await steer(change)
  t.equal(status, 200)
  t.hasStrict(body, { fault: 'gaps', latencyMs: 5, now: '2026-11-21T06:00:00.000Z' })
  t.strictSame(await state(), body)
})

t.test('the clock stands still at a given instant, and runs again with null', async t => {
  const clock = manualClock('2026-12-24T12:00:00Z')
  const { send, steer, state } = await simulate(t, { clock }, '2026-07-01T00:31:00Z')
  const time = async () => (await send(dhaka('current=rain'))).body.current.time
  t.equal(await time(), '2026-07-01T06:30')
  clock.advance(60_000)
  t.equal((await state()).now, '2026-07-01T00:31:00.000Z')
  await steer({ now: null })
  t.equal(await time(), '2026-12-24T18:00')
})

t.test('held answers wait; each is that of the instant at which the call came', async t => {
  const { send, steer, state } = await simulate(t)
  await steer({ hold: true })
  const pending = send(dhaka('current=rain'))
  await until('the call has arrived', async () => (await state()).inFlight > 0)
  await steer({ now: '2026-11-21T07:00:00Z' })
  t.equal((await state()).inFlight, 1)
  await steer({ hold: true, fault: 'none' })
  await steer({ hold: false })
  t.equal((await pending).body.current.time, '2026-11-21T12:00')
  t.equal((await send(dhaka('current=rain'))).body.current.time, '2026-11-21T13:00', 'the gate is open')
})

const wrong: [body: string, reason: RegExp][] = [
  ['{"fault":"angry"}', /^fault must be one of none, bad-request, .*, poison, got "angry"$/],
  ['{"fault":null}', /^fault must be .*, got null$/],
  ['{"fault":"none","times":0}', /^times must be an integer from 1 to 1000000000, got 0$/],
  ['{"fault":"none","times":"2"}', /^times must be .*, got "2"$/],
  ['{"times":2}', /^times requires fault$/],
  ['{"latencyMs":-1}', /^latencyMs must be an integer from 0 to 600000, got -1$/],
  ['{"latencyMs":1.5}', /^latencyMs must be .*, got 1\.5$/],
  ['{"now":"yesterday"}', /^now must be an instant such as .* or null for the real clock, got "yesterday"$/],
  ['{"now":"2026-11-21T06:00:00"}', /^now must be .*, got "2026-11-21T06:00:00"$/],
  ['{"now":"2026-13-21T06:00:00Z"}', /^now must be/],
  ['{"now":1795219200}', /^now must be .*, got 1795219200$/],
  ['{"hold":1}', /^hold must be true or false, got 1$/],
  ['{"reset":"yes"}', /^reset must be true or false, got "yes"$/],
  ['{"pace":2}', /^the fields of \/control are fault, times, latencyMs, now, hold, reset, got pace$/],
  ['{"__proto__":1}', /^the fields of .*, got __proto__$/],
  ['{', /^the body must be a JSON object, got "\{"$/],
  ['[1]', /^the body must be a JSON object, got \[1\]$/],
  ['null', /^the body must be .*, got null$/],
  ['', /^the body must be .*, got ""$/],
]

t.test('a wrong change is 400 with one sentence, and changes nothing at all', async t => {
  const { send, steer, state } = await simulate(t)
  const before = await state()
  for (const [body, reason] of wrong) {
    const answer = await send('/control', { method: 'POST', body })
    t.equal(answer.status, 400, body)
    t.match(answer.body, { error: true, reason }, body)
  }
  t.equal((await steer({ fault: 'internal-error', hold: true, latencyMs: -1 })).status, 400)
  t.strictSame(await state(), before)
  t.equal((await send('/control', { method: 'POST', body: ' '.repeat(200_000) })).status, 413)
})

t.test("an address that can't be listened on is one sentence", async t => {
  const { url } = await simulate(t)
  const port = Number(new URL(url).port)
  await t.rejects(startSimulator({ port }), {
    code: 'bad_input',
    message: new RegExp(`^the provider can't listen on 127\\.0\\.0\\.1:${port}: .*EADDRINUSE`),
  })
})

t.test('closing ends calls that are held, late, hanging or stalled', async t => {
  const simulator = await simulate(t, { latencyMs: 0 })
  const ends: Promise<string>[] = []
  for (const change of [
    { fault: 'hang', times: 1 },
    { fault: 'stall', times: 1 },
    { latencyMs: 600_000 },
    { hold: true },
  ]) {
    await simulator.steer(change)
    const answered = simulator.send(dhaka('hourly=rain')).then(() => 'answered')
    ends.push(answered.catch(() => 'ended'))
    await until('the call has arrived', async () => (await simulator.state()).inFlight >= ends.length)
  }
  await simulator.close()
  t.strictSame(await Promise.all(ends), Array(4).fill('ended'))
})
