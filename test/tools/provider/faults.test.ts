// Without it tests of outages could run against faults that do not happen.

import t, { type Test } from 'tap'
import { type FaultMode, faultModes } from '../../../tools/provider/faults.ts'
import { until } from '../../support/until.ts'
import { type Answer, dhaka, simulate, three, withoutTimings } from './simulated.ts'

const provider = await simulate(t)
const { send, steer, state } = provider
const query = 'minutely_15=rain,is_day&forecast_minutely_15=8&hourly=rain,is_day&daily=weather_code,sunrise'

type Bodies = { single: Answer; list: Answer; good: { single: Answer; list: Answer } }
const tested = new Set<FaultMode>(['none', 'reset', 'hang', 'stall', 'poison'])

const fault = (name: FaultMode, title: string, check: (t: Test, seen: Bodies) => void): void => {
  tested.add(name)
  t.test(`${name}: ${title}`, async t => {
    const good = { single: await send(dhaka(query)), list: await send(three(query)) }
    await steer({ fault: name, times: 2 })
    check(t, { single: await send(dhaka(query)), list: await send(three(query)), good })
    t.equal((await state()).fault, 'none', 'and it is over')
    t.equal((await send(dhaka(query))).status, 200)
  })
}

const refusals: [FaultMode, status: number, reason: RegExp][] = [
  ['bad-request', 400, /^Data corrupted at path/],
  ['too-much-data', 400, /^Your API call requests too much data/],
  ['unauthorized', 401, /API key/],
  ['unknown-key', 400, /API key/],
  ['forbidden', 403, /plan/],
  ['not-found', 404, /^Not Found$/],
  ['minutely-limit', 429, /^Minutely API request limit exceeded/],
  ['hourly-limit', 429, /^Hourly API request limit exceeded/],
  ['daily-limit', 429, /^Daily API request limit exceeded/],
  ['concurrent-limit', 429, /^Too many concurrent requests/],
  ['internal-error', 500, /^Something went wrong\.$/],
  ['overloaded', 503, /^The service is overloaded$/],
]
for (const [name, status, reason] of refusals)
  fault(name, `${status} with a reason`, (t, { single, list }) => {
    for (const answer of [single, list]) {
      t.equal(answer.status, status)
      t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
      t.equal(answer.headers.get('retry-after'), null)
      t.match(answer.body, { error: true, reason })
    }
  })

for (const [name, status] of [
  ['bad-gateway', 502],
  ['gateway-timeout', 504],
] as const)
  fault(name, `${status} as a page`, (t, { single }) => {
    t.equal(single.status, status)
    t.equal(single.headers.get('content-type'), 'text/html')
    t.match(single.text, new RegExp(`<title>${status} `))
  })

fault('empty', '200 without a byte', (t, { single }) => t.match(single, { status: 200, text: /^$/ }))
fault('cut-off', '200, and the JSON ends half way', (t, { single, good }) => {
  t.equal(single.status, 200)
  t.equal(single.body, undefined)
  t.ok(Math.abs(single.text.length - good.single.text.length / 2) < 20)
  t.equal(withoutTimings(good.single.text).startsWith(withoutTimings(single.text)), true)
})
fault('streaming-error', '200, and the JSON turns into a sentence', (t, { list }) => {
  t.equal(list.status, 200)
  t.equal(list.body, undefined)
  t.match(list.text, /^\[\{"latitude".*Unexpected error while streaming data: \w+$/)
})
fault('header-only', 'no section', (t, { single }) => {
  t.equal(single.status, 200)
  t.equal(Object.keys(single.body).at(-1), 'elevation')
})
fault('wrong-count', 'one element too few, or two for a point', (t, { single, list }) => {
  t.equal(single.body.length, 2)
  t.equal(list.body.length, 2)
})
fault('wrong-offset', 'times of another zone under the name of the right one', (t, { single, good }) => {
  t.hasStrict(single.body, { utc_offset_seconds: 0, timezone: 'Asia/Dhaka' })
  t.equal(single.body.minutely_15.time[0], '2026-11-21T06:00')
  t.strictSame(single.body.minutely_15.rain, good.single.body.minutely_15.rain)
  t.equal(single.body.hourly.time[0], '2026-11-21T00:00')
  t.equal(single.body.hourly.rain[0], good.single.body.hourly.rain[6])
})
fault('missing-section', 'one section is not there', (t, { single, list }) => {
  for (const element of [single.body, ...list.body]) {
    t.notOk('minutely_15' in element || 'minutely_15_units' in element)
    t.ok('hourly' in element && 'daily' in element)
  }
})
fault('missing-variable', 'one variable is not there', (t, { single }) => {
  t.strictSame(Object.keys(single.body.minutely_15), ['time', 'rain'])
  t.strictSame(Object.keys(single.body.minutely_15_units), ['time', 'rain'])
})
fault('short-array', 'one array lacks its last value', (t, { single }) => {
  const { time, rain, is_day } = single.body.minutely_15
  t.strictSame([time.length, rain.length, is_day.length], [8, 8, 7])
})
fault('irregular-times', 'one time is out of step', (t, { single, good }) => {
  const wrong = single.body.minutely_15.time.filter(
    (time: string, i: number) => time !== good.single.body.minutely_15.time[i],
  )
  t.equal(wrong.length, 1)
})
fault('all-null', 'every value is null and every unit undefined', (t, { list }) => {
  for (const element of list.body) {
    t.strictSame(element.hourly_units, { time: 'iso8601', rain: 'undefined', is_day: 'undefined' })
    t.strictSame(element.minutely_15.rain, Array(8).fill(null))
    t.strictSame(new Set([...element.hourly.is_day, ...element.daily.weather_code]), new Set([null]))
    t.equal(element.hourly.time.length, 168)
  }
})
fault('gaps', 'some values are null, those of the first step among them', (t, { single, good }) => {
  const { rain } = single.body.minutely_15
  t.equal(rain[0], null)
  t.strictSame(rain.slice(1, 5), good.single.body.minutely_15.rain.slice(1, 5))
  t.ok(single.body.hourly.is_day.includes(null) && single.body.hourly.is_day.includes(1))
  t.hasStrict(single.body.hourly_units, { rain: 'mm' })
})
fault('odd-values', 'some values are impossible, those of the first step among them', (t, { list }) => {
  for (const { daily, hourly } of list.body) {
    t.equal(daily.weather_code[0], 4)
    t.strictSame(hourly.is_day.slice(0, 2), [0, 0], 'others are not')
  }
})
fault('trickle', 'slow, but whole', (t, { single, good }) => {
  t.equal(withoutTimings(single.text), withoutTimings(good.single.text))
})

t.test('trickle: the body comes in many small pieces', async t => {
  const { text } = await send(three('hourly=rain'))
  await steer({ fault: 'trickle', times: 1 })
  const { body } = await fetch(provider.url + three('hourly=rain'))
  const pieces: number[] = []
  for await (const piece of body as ReadableStream<Uint8Array>) pieces.push(piece.length)
  t.ok(pieces.length > 5, `${pieces.length} pieces`)
  t.ok(Math.max(...pieces) < text.length / 2)
})

t.test('reset: the connection is reset before an answer', async t => {
  await steer({ fault: 'reset', times: 1 })
  const failed = await send(dhaka(query)).catch(error => error)
  t.match(failed.cause, { code: /^(ECONNRESET|UND_ERR_SOCKET)$/ })
  t.equal((await state()).requests.at(-1).status, null)
})

t.test('hang: no answer comes, and the call counts as in flight until the caller leaves', async t => {
  await steer({ fault: 'hang', times: 1 })
  const { calls } = await state()
  const caller = new AbortController()
  const pending = send(dhaka(query), { signal: caller.signal }).catch(error => error.name)
  await until('the call has arrived', async () => (await state()).calls > calls)
  // Later calls are served while this one hangs.
  t.equal((await send(dhaka(query))).status, 200)
  const { inFlight, requests } = await state()
  t.equal(inFlight, 1)
  t.equal(requests.at(-2).status, null)
  caller.abort()
  t.equal(await pending, 'AbortError')
  await until('nothing is in flight', async () => (await state()).inFlight === 0)
})

t.test('stall: headers and half of the body come, then nothing', async t => {
  const whole = Buffer.byteLength((await send(dhaka(query))).text)
  await steer({ fault: 'stall', times: 1 })
  const caller = new AbortController()
  const { status, headers, body } = await fetch(provider.url + dhaka(query), { signal: caller.signal })
  t.equal(status, 200)
  const promised = Number(headers.get('content-length'))
  t.ok(Math.abs(promised - whole) < 20)
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  let received = 0
  while (received < Math.floor(promised / 2)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`the body ended after ${received} bytes`)
    received += value.length
  }
  t.equal(received, Math.floor(promised / 2))
  const more = reader.read().catch(error => error.name)
  t.equal((await send(dhaka(query))).status, 200)
  t.equal((await state()).inFlight, 1, 'it still stands')
  caller.abort()
  t.equal(await more, 'AbortError')
})

t.test('poison: one point fails its whole batch, and nothing else', async t => {
  await steer({ fault: 'poison' })
  t.teardown(() => steer({ fault: 'none' }))
  const batch = await send('/v1/forecast?latitude=22.1,22.2&longitude=91.1,91.1&hourly=rain')
  t.match(batch, { status: 400, body: { error: true } })
  t.equal((await send('/v1/forecast?latitude=22.2&longitude=91.1&hourly=rain')).status, 400)
  t.equal((await send('/v1/forecast?latitude=22.1,22.2&longitude=91.1,91.2&hourly=rain')).status, 200)
})

t.test('a fault without times stays until it is changed, and affects forecasts alone', async t => {
  await steer({ fault: 'internal-error' })
  t.teardown(() => steer({ fault: 'none' }))
  for (let call = 0; call < 3; call++) t.equal((await send(dhaka(query))).status, 500)
  t.equal((await send('/data/ecmwf_ifs/static/meta.json')).status, 200)
})

t.test('every fault mode has a test', async t => {
  t.strictSame([...tested].sort(), [...faultModes].sort())
})
