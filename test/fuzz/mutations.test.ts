// Without it a change of a body could change nothing, and the fuzzer find nothing.

import { gunzipSync } from 'node:zlib'
import fc, { type Arbitrary } from 'fast-check'
import t from 'tap'
import { createResponseReader } from '../../fuzz/http/response-reader.ts'
import { bombs, bombText, changed, changeKinds, changesOf } from '../../fuzz/targets/body-changes.ts'
import { badWires, isIntact, rightWires, sent, type Wire } from '../../fuzz/targets/body-wire.ts'

const some = <Value>(of: Arbitrary<Value>, numRuns: number): Value[] =>
  fc.sample(of, { seed: 7, numRuns, unbiased: true })

const time = ['2026-11-21T00:00', '2026-11-21T01:00', '2026-11-21T02:00']
const section = { time, temperature_2m: [1, 2, 3], rain: [4, 5, 6] }
const units = { time: 'iso8601', temperature_2m: '°C' }
const element = (latitude: number) => ({
  ...{ latitude, longitude: 90, utc_offset_seconds: 21_600 },
  ...{ minutely_15_units: units, hourly_units: units, daily_units: units },
  minutely_15: section,
  hourly: { ...section, rain: [7, 8, latitude] },
  daily: { ...section, temperature_2m: [10, 11, 12] },
})
const body = JSON.stringify([element(22), element(23), element(24)])

t.test('a body without changes stays as it is, and every change changes most bodies', async t => {
  t.equal(changed(body, []), body)
  for (const kind of changeKinds) {
    const texts = some(changesOf(kind), 40).map(change => changed(body, [change]))
    t.ok(texts.filter(text => text !== body).length >= 20, kind)
  }
  const change = { kind: 'a value', at: [0, 0, 0.5, 0], value: '@raw:1e400@' }
  t.match(changed(body, [change]), /"temperature_2m":\[1e400,2,3\]/, 'also to what no value is written as')
})

t.test('bombs have about the size they say', async t => {
  for (const { kind } of some(bombs, 60)) {
    const { length } = bombText({ kind, megabytes: 1 }, JSON.stringify(element(22)))
    t.ok(length > 700_000 && length < 1_300_000, `${kind}: ${length}`)
  }
})

t.test('a body goes out as HTTP has it, or damaged', async t => {
  const bytesOf = (wire: Wire) => Buffer.concat(sent(Buffer.from(body), wire))
  const right = some(rightWires, 20)
  for (const wire of right) {
    const reader = createResponseReader(() => false)
    // Without a length it goes on until the close.
    for (const byte of bytesOf(wire)) reader.push(Buffer.of(byte))
    const [answer] = reader.answers
    const read = answer?.headers.has('content-encoding') ? gunzipSync(answer.body) : answer?.body
    const isUntilClose = reader.fault === 'a body without a length' && bytesOf(wire).toString().endsWith(body)
    t.ok(isIntact(wire) && (isUntilClose || read?.toString() === body), wire.kind)
  }
  const all = right.map(wire => bytesOf(wire).toString('latin1'))
  for (const wire of some(badWires, 60))
    t.notOk(isIntact(wire) || all.includes(bytesOf(wire).toString('latin1')), wire.kind)
})
