import t from 'tap'
import { askedIn } from '../../src/edge/asked.ts'

const nothing = {
  host: undefined,
  key: undefined,
  requestId: undefined,
  ifNoneMatch: undefined,
  acceptEncoding: undefined,
  forwardedProto: undefined,
  transferEncoding: undefined,
}

t.test('the headers that matter are found, in whatever case, and the others left', async t => {
  t.strictSame(askedIn([]), nothing)
  t.strictSame(
    askedIn(
      [
        ['Host', 'x'],
        ['X-API-Key', 'svc_live_1'],
        ['x-request-id', 'trace'],
        ['IF-NONE-MATCH', '"a"'],
        ['Accept-Encoding', 'br'],
        ['X-Forwarded-Proto', 'https'],
        ['Transfer-Encoding', 'chunked'],
        ['User-Agent', 'curl'],
        ['x-api-kez', 'another of the same length'],
      ].flat(),
    ),
    {
      host: 'x',
      key: 'svc_live_1',
      requestId: 'trace',
      ifNoneMatch: '"a"',
      acceptEncoding: 'br',
      forwardedProto: 'https',
      transferEncoding: 'chunked',
    },
  )
})

t.test('what comes more than once is one list', async t => {
  t.strictSame(askedIn(['x-forwarded-proto', 'http', 'X-Forwarded-Proto', 'https']), {
    ...nothing,
    forwardedProto: 'http, https',
  })
})
