// Without it the gateway would be tested against other limits than the real provider has.

import t from 'tap'
import { manualClock } from '../../support/manual-clock.ts'
import { patienceMs, until } from '../../support/until.ts'
import { allDaily, allInstant, dhaka, simulate, three } from './simulated.ts'

const start = '2026-11-21T06:10:20Z'
const freeHost = async (t: Parameters<typeof simulate>[0]) => {
  const clock = manualClock(start)
  return { clock, ...(await simulate(t, { limits: 'free', clock }, null)) }
}
const points = (count: number) =>
  `/v1/forecast?latitude=${Array(count).fill(23.8)}&longitude=${Array(count).fill(90.4)}`

t.test('a call weighs at least 1 a point, more with over ten variables and over fourteen days', async t => {
  const { send, state } = await simulate(t)
  const fifteen = `current=${allInstant}`
  const many = `${fifteen}&hourly=${allInstant}&daily=${allDaily.split(',').slice(0, 4)}`
  const weights: [path: string, weight: number][] = [
    [dhaka('hourly=rain'), 1],
    [dhaka(''), 1],
    [three('hourly=rain'), 3],
    [dhaka(fifteen), 1.5],
    [dhaka(`${fifteen}&daily=weather_code,sunrise,sunset,temperature_2m_max`), 1.9],
    [dhaka(many), 3.4],
    [dhaka(`${many}&forecast_days=16`), 3.4 * (16 / 14)],
    [dhaka(`minutely_15=${allInstant}&forecast_days=14&past_days=14`), 3],
    [dhaka(`minutely_15=${allInstant}&forecast_minutely_15=4&forecast_days=16`), 1.5 * (16 / 14)],
    [dhaka('hourly=rain,rain,rain&forecast_days=16'), 1],
    [dhaka('hourly=nonsense'), 1],
    ['/v1/forecast', 1],
  ]
  for (const [path, weight] of weights) {
    const before = (await state()).weight
    await send(path)
    const added = (await state()).weight - before
    t.ok(Math.abs(added - weight) < 1e-9, `${path.slice(-60)}: ${added}`)
  }
})

t.test('the call that crosses the limit succeeds; the next is refused until the minute turns', async t => {
  const { send, clock, state } = await freeHost(t)
  for (const count of [599, 30]) t.equal((await send(`${points(count)}&current=rain`)).status, 200)
  const refusal = { status: 429, body: { reason: /^Minutely API request limit exceeded/ } }
  for (let i = 0; i < 2; i++) t.match(await send(dhaka('hourly=rain')), refusal)
  t.match(await state(), { calls: 4, points: 631, weight: 629, refused: 2 })
  clock.advance(39_999)
  t.equal((await send(dhaka('hourly=rain'))).status, 429)
  clock.advance(1)
  t.equal((await send(dhaka('hourly=rain'))).status, 200, 'at 06:11:00')
})

t.test('hours and UTC days are windows of their own', async t => {
  const { send, clock } = await freeHost(t)
  const useHour = async () => {
    for (let minute = 0; minute < 5; minute++) {
      t.equal((await send(`${points(1000)}&current=rain`)).status, 200)
      clock.advance(60_000)
    }
  }
  await useHour()
  t.match(await send(dhaka('hourly=rain')), { status: 429, body: { reason: /^Hourly/ } })
  clock.set('2026-11-21T07:00:00Z')
  await useHour()
  t.match(await send(dhaka('hourly=rain')), { status: 429, body: { reason: /^Daily/ } })
  clock.set('2026-11-21T23:59:59.999Z')
  t.match(await send(dhaka('hourly=rain')), { status: 429, body: { reason: /^Daily/ } })
  clock.advance(1)
  t.equal((await send(dhaka('hourly=rain'))).status, 200, 'the day turns at 00:00 UTC')
})

t.test('failed calls weigh 1, refused ones nothing; a reset empties the windows', async t => {
  const { send, steer, state } = await freeHost(t)
  await steer({ fault: 'internal-error', times: 1 })
  await send(dhaka('hourly=rain'))
  await send(dhaka('hourly=nonsense'))
  await send('/v1/forecast')
  t.equal((await state()).weight, 3)
  await send(`${points(597)}&current=rain`)
  t.equal((await send(dhaka('hourly=rain'))).status, 429)
  t.equal((await state()).weight, 600)
  await steer({ reset: true })
  t.match(await state(), { calls: 0, points: 0, weight: 0, refused: 0, requests: [] })
  t.equal((await send(dhaka('hourly=rain'))).status, 200)
  const heavy = `${points(1000)}&minutely_15=${allInstant}&hourly=${allInstant},${allInstant},${allInstant}`
  t.match(await send(heavy), { status: 400, body: { reason: /requests too much data/ } }, 'above 5,000')
})

t.test('one call runs and four wait, the next is refused at once; who disconnects frees a place', async t => {
  const { send, steer, state } = await freeHost(t)
  await steer({ hold: true })
  const fiveCalls = async (signal: AbortSignal) => {
    const calls = Array.from({ length: 5 }, () => send(dhaka('hourly=rain'), { signal }))
    const ended = Promise.allSettled(calls)
    await until('5 calls have arrived', async () => (await state()).inFlight >= 5)
    return { ended }
  }
  const leaving = new AbortController()
  const left = await fiveCalls(leaving.signal)
  leaving.abort()
  for (const call of await left.ended) t.match(call, { reason: { name: 'AbortError' } })
  await until('nothing is in flight', async () => (await state()).inFlight === 0)
  const pending = await fiveCalls(AbortSignal.timeout(patienceMs))
  const refusal = { status: 429, body: { reason: /^Too many concurrent requests/ } }
  t.match(await send(dhaka('hourly=rain')), refusal)
  await steer({ hold: false })
  for (const call of await pending.ended) t.match(call, { value: { status: 200 } })
  t.match(await state(), { refused: 1, inFlight: 0, maxInFlight: 6 })
  t.equal((await send(dhaka('hourly=rain'))).status, 200, 'and there is room again')
})

t.test('without limits everything runs at once and nothing is refused', async t => {
  const { send, steer, state } = await simulate(t)
  await steer({ hold: true })
  const pending = Array.from({ length: 20 }, () => send(`${points(100)}&current=rain`))
  await until('20 calls have arrived', async () => (await state()).inFlight >= 20)
  await steer({ hold: false })
  for (const { status } of await Promise.all(pending)) t.equal(status, 200)
  t.match(await state(), { calls: 20, points: 2000, weight: 2000, refused: 0, maxInFlight: 20 })
})
