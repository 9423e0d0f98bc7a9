// The lines of requests: whole JSON whatever a consumer sends, and the share of them that is written.

import fc from 'fast-check'
import t from 'tap'
import { type AnsweredRequest, createAccessLog } from '../../src/ops/access-log.ts'
import { manualClock } from '../support/manual-clock.ts'

const request: AnsweredRequest = {
  requestId: 'abc-1',
  method: 'GET',
  url: '/api/v1/weather/district/3026?lang=en',
  endpoint: 'weather',
  status: 200,
  ms: 0.123,
  keyId: 'key_1',
  cache: 'hit; ttl=412; detail=memory',
}

const written = (accessShare = 1, random = Math.random) => {
  const clock = manualClock('2026-11-21T06:05:00.007Z')
  const texts: string[] = []
  const log = createAccessLog({ accessShare }, { write: text => void texts.push(text) }, clock, random)
  return { clock, log, texts }
}

t.test('a line says what was asked, by whom, and what became of it', async t => {
  const { log, texts, clock } = written()
  log(request)
  clock.advance(1)
  log({ ...request, endpoint: 'other', status: 401, keyId: undefined, cache: undefined })
  t.strictSame(
    texts.map(text => JSON.parse(text)),
    [
      { level: 'info', time: '2026-11-21T06:05:00.007Z', ...request, msg: 'answered' },
      {
        level: 'info',
        time: '2026-11-21T06:05:00.008Z',
        requestId: 'abc-1',
        method: 'GET',
        url: request.url,
        endpoint: 'other',
        status: 401,
        ms: 0.123,
        msg: 'answered',
      },
    ],
  )
})

t.test('whatever stands in a URL, a line is one line of JSON that gives it back', async t => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), url => {
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
