// Without it a request could write a line that is no JSON, or holds a key.

import fc from 'fast-check'
import t from 'tap'
import { createKey } from '../../src/keys/key-form.ts'
import { type AnsweredRequest, createAccessLog } from '../../src/telemetry/access-log.ts'
import { anyText } from '../support/any-text.ts'
import { leakIn, spellings } from '../support/key-spellings.ts'
import { manualClock } from '../support/manual-clock.ts'
import { rawControlIn } from '../support/raw-controls.ts'

const request: AnsweredRequest = {
  requestId: 'abc-1',
  method: 'GET',
  url: '/api/v1/weather/district/3026?lang=en',
  endpoint: 'weather',
  status: 200,
  ms: 0.123,
  keyId: 'key_1',
  cache: 'hit; ttl=412; detail=memory',
  cell: '23.8,90.4',
  cost: 7,
  tier: 'business',
  reason: undefined,
  arrivedAt: Date.parse('2026-11-21T06:05:00.005Z'),
  address: '203.0.113.7',
  connection: { number: 12 },
  connectionRequest: 3,
  httpVersion: '1.1',
  bytes: 4_321,
  encoding: 'br',
  notModified: false,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
}

const absent = ['keyId', 'cache', 'cell', 'cost', 'tier', 'address', 'encoding', 'notModified', 'traceId']
const without = Object.fromEntries(absent.map(name => [name, undefined]))

const written = (accessShare = 1, random = Math.random) => {
  const clock = manualClock('2026-11-21T06:05:00.007Z')
  const texts: string[] = []
  let line = ''
  const write = (part: string): void => {
    line += part
  }
  const copy = (part: Uint8Array): void => write(Buffer.from(part).toString())
  const end = (part: Uint8Array): void => {
    copy(part)
    texts.push(line)
    line = ''
  }
  const log = createAccessLog(accessShare, { write, copy, end }, clock, random)
  return { clock, log, texts }
}

t.test('a line has the request, the consumer and the outcome', async t => {
  const { log, texts, clock } = written()
  log(request)
  clock.advance(1)
  log({ ...request, ...without, cost: 1, endpoint: 'other', status: 401, reason: 'unknown', bytes: 56 })
  const common = { level: 'info', arrivedAt: '2026-11-21T06:05:00.005Z', msg: 'answered' }
  const [full, refused] = texts.map(text => JSON.parse(text))
  const { address: client, connection, reason: _, ...same } = request
  const fields = { ...same, client, connection: connection.number }
  t.strictSame(full, {
    ...fields,
    ...{ ...common, time: '2026-11-21T06:05:00.007Z' },
  })
  const { requestId, method, url, ms, httpVersion, connectionRequest } = request
  t.strictSame(refused, {
    ...{ ...common, time: '2026-11-21T06:05:00.008Z', requestId, method, url, endpoint: 'other' },
    ...{ status: 401, reason: 'unknown', bytes: 56, ms, httpVersion, connection: 12, connectionRequest },
  })
})

t.test('whatever stands in a URL, a line is one line of JSON that gives it back', async t => {
  fc.assert(
    fc.property(anyText(), url => {
      const { log, texts } = written()
      log({ ...request, url })
      t.match(texts[0], /^[^\n]*\n$/)
      return JSON.parse(texts[0] ?? '').url === url
    }),
  )
})

t.test('of answers a share is written, and says so; of failures all', async t => {
  let drawn = 0
  const { log, texts } = written(0.25, () => (drawn++ % 4) / 4)
  for (let i = 0; i < 8; i++) log(request)
  t.equal(texts.length, 2)
  t.equal(JSON.parse(texts[0] ?? '').share, 0.25)
  for (let i = 0; i < 8; i++) log({ ...request, status: 500 })
  t.equal(texts.length, 10)
  const none = written(0)
  none.log(request)
  none.log({ ...request, status: 500 })
  t.equal(none.texts.length, 1)
})

t.test('a URL is written without keys, without a password, and at most 2,000 characters long', async t => {
  const { log, texts } = written()
  const key = createKey()
  for (const spell of Object.values(spellings))
    for (const url of [`/x?k=${spell(key)}&y=1`, `/${'x'.repeat(1_960)}?k=${spell(key)}`])
      log({ ...request, url })
  log({ ...request, url: `http://user:secret@host/x?y=${'z'.repeat(10_000)}` })
  log({ ...request, url: `/x?y=${'z'.repeat(16_000)}` })
  for (const text of texts) {
    t.equal(leakIn(text, key), undefined, text)
    t.ok(JSON.parse(text).url.length <= 2_001)
    t.notMatch(text, 'secret')
  }
  t.match(JSON.parse(texts.at(-2) ?? '').url, /^http:\/\/user:\*\*\*@host\/x\?y=z+…$/)
})

t.test('an id of the store can’t write fields of its own', async t => {
  const { log, texts } = written()
  log({ ...request, keyId: 'k","status":999,"x":"\u001b\u202e' })
  t.hasStrict(JSON.parse(texts[0] ?? ''), { status: 200, keyId: 'k","status":999,"x":"\u001b\u202e' })
  t.equal(rawControlIn(texts[0] ?? ''), undefined)
})
