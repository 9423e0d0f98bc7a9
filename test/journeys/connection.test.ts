// Many requests on one connection: the responses come in order, complete, and each with the figures of its own key.

import { connect } from 'node:net'
import t from 'tap'
import { startProvider } from '../support/provider-process.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
let gateway: TestGateway
t.before(async () => {
  gateway = await startGateway(t, { providerUrl: provider.url })
})

type Answer = { status: number; headers: Map<string, string>; body: string }

/** All responses on one connection to these bytes, until there are `count` of them or the connection ends. */
const answersTo = async (
  bytes: string,
  methods: readonly string[],
): Promise<{ answers: Answer[]; ended: boolean }> => {
  const { hostname, port } = new URL(gateway.apiUrl)
  const socket = connect(Number(port), hostname)
  let received = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
  })
  let ended = false
  socket.on('end', () => {
    ended = true
  })
  socket.write(bytes)
  const answers: Answer[] = []
  while (answers.length < methods.length) {
    const end = received.indexOf('\r\n\r\n')
    const [statusLine = '', ...lines] = received.toString('latin1', 0, Math.max(end, 0)).split('\r\n')
    const headers = new Map(lines.map(line => line.split(/: (.*)/s).slice(0, 2) as [string, string]))
    const bodyless = methods[answers.length] === 'HEAD' || statusLine.includes(' 304 ')
    const length = bodyless ? 0 : Number(headers.get('content-length') ?? 0)
    if (end < 0 || received.length < end + 4 + length) {
      const had = received.length
      await until('more comes, or the end', () => received.length > had || socket.destroyed)
      if (received.length === had) throw new Error(`ended after ${answers.length} answers`)
      continue
    }
    const body = received.toString('utf8', end + 4, end + 4 + length)
    answers.push({ status: Number(statusLine.split(' ')[1]), headers, body })
    received = received.subarray(end + 4 + length)
  }
  if (
    [...(answers.at(-1)?.headers ?? [])].some(([name, value]) => name === 'connection' && value === 'close')
  )
    await until('the connection ends', () => ended)
  socket.destroy()
  return { answers, ended }
}

const requestText = (
  path: string,
  more = '',
  method = 'GET',
  version = '1.1',
  key = gateway.keys.enterprise,
) => `${method} /api/v1${path} HTTP/${version}\r\nhost: x\r\nx-api-key: ${key}\r\n${more}\r\n`

t.test(
  'requests sent at once are answered in their order, cold and warm, with and without bodies',
  async t => {
    const { headers } = await gateway.get('/weather/district/3026')
    const requests: [string, string, string][] = [
      ['/weather/coords/25.5/89.5', '', 'GET'],
      ['/weather/district/3026', '', 'GET'],
      ['/weather/district/3026', '', 'HEAD'],
      ['/weather/district/3026', `if-none-match: ${headers.etag}\r\n`, 'GET'],
      ['/weather/district/9', '', 'GET'],
      ['/locations/district/3026', '', 'GET'],
      ['/forecast/district/3026?days=2', '', 'GET'],
    ]
    const { answers, ended } = await answersTo(
      requests.map(([path, more, method]) => requestText(path, more, method)).join(''),
      requests.map(([, , method]) => method),
    )
    t.strictSame(
      answers.map(({ status }) => status),
      [200, 200, 200, 304, 404, 200, 200],
    )
    t.equal(JSON.parse(answers[0]?.body ?? '').location.type, 'coords')
    t.equal(JSON.parse(answers[1]?.body ?? '').location.id, '3026')
    t.equal(answers[2]?.headers.get('content-length'), answers[1]?.headers.get('content-length'))
    t.equal(JSON.parse(answers[6]?.body ?? '').daily.time.length, 2)
    t.notOk(ended)
    for (const { headers } of answers) t.equal(headers.get('connection'), 'keep-alive')
    t.equal(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size, answers.length)
  },
)

t.test('keys that take turns on a connection are each counted for themselves', async t => {
  const [free, business] = [gateway.keys.free, gateway.keys.business]
  const wrong = `${free?.slice(0, -1)}${free?.endsWith('0') ? '1' : '0'}`
  const path = '/locations/district/3026'
  const turn = [free, business, wrong, free, undefined, business, free]
  const { answers } = await answersTo(
    turn.map(key => requestText(path, '', 'GET', '1.1', key ?? '')).join(''),
    turn.map(() => 'GET'),
  )
  t.strictSame(
    answers.map(({ status, headers }) => [
      status,
      headers.get('x-ratelimit-limit'),
      headers.get('x-ratelimit-remaining'),
    ]),
    [
      [200, '100', '99'],
      [200, '10000', '9999'],
      [401, '0', '0'],
      [200, '100', '98'],
      [401, '0', '0'],
      [200, '10000', '9998'],
      [200, '100', '97'],
    ],
  )
})

t.test(
  'a connection closes when its consumer requests that, and with HTTP/1.0 unless it is kept alive',
  async t => {
    const path = '/weather/district/3026'
    for (const [bytes, kept] of [
      [requestText(path, 'connection: close\r\n'), false],
      [requestText(path, '', 'GET', '1.0'), false],
      [requestText(path, 'connection: keep-alive\r\n', 'GET', '1.0'), true],
      [requestText('/nothing', 'connection: close\r\n'), false],
    ] as const) {
      const { answers, ended } = await answersTo(bytes, ['GET'])
      t.equal(answers[0]?.headers.get('connection'), kept ? 'keep-alive' : 'close', bytes.slice(0, 60))
      t.equal(ended, !kept)
    }
  },
)
