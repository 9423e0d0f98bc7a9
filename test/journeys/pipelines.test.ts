// Pipelined requests on one connection, some of them malformed: each complete request gets one response in its place, the
// garbage gets one 400 after them, and nothing gets two responses.

import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { startProvider } from '../support/provider-process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
let gateway: TestGateway
t.before(async () => {
  gateway = await startGateway(t, { providerUrl: provider.url })
})

let sent = 0
const request = (path: string, { method = 'GET', more = '', key = gateway.keys.enterprise ?? '' } = {}) => {
  sent += 1
  return `${method} /api/v1${path} HTTP/1.1\r\nhost: x\r\nx-request-id: r${sent}\r\nx-api-key: ${key}\r\n${more}\r\n`
}
const outline = (answers: readonly { status: number; body: string }[]) =>
  answers.map(({ status, body }) => [status, JSON.parse(body).error])

t.test('garbage behind whole requests gets one 400 after all of their answers', async t => {
  // The first needs the provider, so that all responses are outstanding when the garbage is parsed.
  for (const [garbage, status, sentence] of [
    ['hello there\r\n\r\n', 400, 'the request is not valid HTTP'],
    [
      `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`,
      400,
      'the URL and headers are too large; allowed: 16 KiB together',
    ],
    ['CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', 405, 'the method is CONNECT; allowed: GET, HEAD'],
  ] as const)
    for (const cell of ['25.5/89.5', '24.5/89.5']) {
      const raw = await openRaw(t, gateway.apiUrl)
      raw.send(
        request(`/weather/coords/${cell}`) +
          request('/locations/district/3026') +
          request('/forecast/district/3026') +
          garbage,
      )
      const answers = await raw.answersToTheEnd()
      t.strictSame(outline(answers), [
        [200, undefined],
        [200, undefined],
        [200, undefined],
        [status, sentence],
      ])
      t.strictSame(
        answers.map(({ headers }) => headers.get('connection')),
        ['keep-alive', 'keep-alive', 'keep-alive', 'close'],
      )
    }
})

t.test('garbage that comes later gets the same response', async t => {
  const raw = await openRaw(t, gateway.apiUrl)
  raw.send(request('/locations/district/3026'))
  t.equal((await raw.answer()).status, 200)
  raw.send('hello there\r\n\r\n')
  t.strictSame(outline(await raw.answersToTheEnd()), [[400, 'the request is not valid HTTP']])
})

t.test('a body that turns bad belongs to its request, which is not answered twice', async t => {
  const post = request('/locations', { method: 'POST', more: 'transfer-encoding: chunked\r\n' })
  for (const before of ['', request('/locations/district/3026')]) {
    // Together with the request, and after its response.
    const together = await openRaw(t, gateway.apiUrl)
    together.send(`${before}${post}5\r\nhello\r\nnonsense\r\n\r\n`)
    const later = await openRaw(t, gateway.apiUrl)
    later.send(`${before}${post}5\r\nhello\r\n`)
    if (before) t.equal((await later.answer()).status, 200)
    t.equal((await later.answer()).status, 405)
    later.send('nonsense\r\n\r\n')
    t.strictSame(await later.answersToTheEnd(), [], 'nothing behind the 405')
    t.strictSame(
      (await together.answersToTheEnd()).map(({ status }) => status),
      before ? [200, 405] : [405],
    )
  }
})

t.test('nothing is answered behind a request with a body', async t => {
  const raw = await openRaw(t, gateway.apiUrl)
  const post = request('/locations', { method: 'POST', more: 'transfer-encoding: chunked\r\n' })
  raw.send(`${post}5\r\nhello\r\n0\r\n\r\n${request('/locations/district/3026')}`)
  const answers = await raw.answersToTheEnd()
  t.strictSame(
    answers.map(({ status, headers }) => [status, headers.get('connection')]),
    [[405, 'close']],
  )
})

t.test('thousands of requests at once are answered in their order', async t => {
  const raw = await openRaw(t, gateway.apiUrl)
  const first = sent + 1
  const count = 3_000
  raw.send(Array.from({ length: count }, () => request('/locations/district/3026')).join(''))
  for (let i = 0; i < count; i++) {
    const answer = await raw.answer()
    if (answer.status !== 200 || answer.headers.get('x-request-id') !== `r${first + i}`)
      t.fail(`answer ${i} is ${answer.status} to ${answer.headers.get('x-request-id')}`)
  }
  raw.send(request('/locations/district/3026'))
  t.equal((await raw.answer()).status, 200)
})

t.test('a client without a good key is answered a hundred times on one connection', async t => {
  const raw = await openRaw(t, gateway.apiUrl)
  // No more than are answered: what is sent beyond them may turn the end into a reset, and cost answers on their way.
  raw.send(Array.from({ length: 100 }, () => request('/locations/district/3026', { key: '' })).join(''))
  const answers = await raw.answersToTheEnd()
  t.equal(answers.length, 100)
  t.ok(answers.every(({ status }) => status === 401))
  t.equal(answers.at(-1)?.headers.get('connection'), 'close')
  t.equal(answers.at(-2)?.headers.get('connection'), 'keep-alive')

  const patient = await openRaw(t, gateway.apiUrl)
  patient.send(Array.from({ length: 90 }, () => request('/locations/district/3026', { key: '' })).join(''))
  for (let i = 0; i < 90; i++) await patient.answer()
  patient.send(request('/locations/district/3026'))
  t.equal((await patient.answer()).status, 200, 'a request whose key is found is served')
  patient.send(Array.from({ length: 300 }, () => request('/locations/district/3026', { key: '' })).join(''))
  for (let i = 0; i < 300; i++) await patient.answer()
  patient.send(request('/locations/district/3026'))
  t.equal((await patient.answer()).status, 200, 'and is not sent away any more')
})

t.test('requests that arrive byte by byte are answered like whole ones', async t => {
  const raw = await openRaw(t, gateway.apiUrl)
  raw.socket.setNoDelay(true)
  for (const byte of request('/locations/district/3026') + request('/nothing')) {
    raw.send(byte)
    await new Promise(setImmediate)
  }
  t.equal((await raw.answer()).status, 200)
  t.equal((await raw.answer()).status, 404)
})

t.test('a client that ends its side still gets all of its answers', async t => {
  for (const key of [gateway.keys.enterprise ?? '', '']) {
    const raw = await openRaw(t, gateway.apiUrl)
    raw.send(Array.from({ length: 50 }, () => request('/locations/district/3026', { key })).join(''))
    raw.socket.end()
    t.equal((await raw.answersToTheEnd()).length, 50)
  }
  // Its end comes while the answer is still to come.
  await provider.steer({ hold: true })
  const raw = await openRaw(t, gateway.apiUrl)
  raw.send(request('/weather/coords/22.5/90.5'))
  raw.socket.end()
  await until('the provider is asked', async () => (await provider.state()).inFlight > 0)
  await provider.steer({ hold: false })
  t.equal((await raw.answersToTheEnd()).length, 1)
})

const startSecure = (t: Parameters<typeof startGateway>[0]): Promise<TestGateway> => {
  const fixtures = join(import.meta.dirname, '..', 'fixtures')
  return startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_SERVER__TLS__CERT: join(fixtures, 'localhost.crt'),
      ABOHAWA_SERVER__TLS__KEY: join(fixtures, 'localhost.key'),
    },
  })
}

t.test('over TLS it is the same', async t => {
  const secure = await startSecure(t)
  const key = secure.keys.enterprise ?? ''
  const raw = await openRaw(t, secure.apiUrl)
  const count = 1_000
  const place = () => request('/locations/district/3026', { key })
  raw.send(Array.from({ length: count }, place).join(''))
  for (let i = 0; i < count; i++) t.equal((await raw.answer()).status, 200)
  raw.send(`${place()}${request('/weather/coords/25.5/89.5', { key })}${place()}hello there\r\n\r\n`)
  t.strictSame(
    (await raw.answersToTheEnd()).map(({ status }) => status),
    [200, 200, 200, 400],
  )
})

t.test('no more is read of a client while a hundred of its requests wait', async t => {
  for (const { apiUrl, keys } of [gateway, await startSecure(t)]) {
    const key = keys.enterprise ?? ''
    const other = await openRaw(t, apiUrl)
    const remaining = async () => {
      other.send(request('/locations/district/3026', { key }))
      return Number((await other.answer()).headers.get('x-ratelimit-remaining'))
    }
    const before = await remaining()
    await provider.steer({ hold: true })
    const raw = await openRaw(t, apiUrl)
    const cold = request('/weather/coords/21.5/92.5', { key })
    const count = 5_000
    raw.send(cold.repeat(count))
    let asked = 0
    const taken = async () => before - (await remaining()) - ++asked
    await until('a hundred wait', async () => (await taken()) >= 100)
    for (let i = 0; i < 50; i++) {
      // What came in one read has come.
      const now = await taken()
      if (now > 100 + (64 * 1024) / cold.length) t.fail(`${now} were taken`)
    }
    await provider.steer({ hold: false })
    for (let i = 0; i < count; i++) if ((await raw.answer()).status !== 200) t.fail(`answer ${i}`)
    t.equal(await taken(), count, 'all are answered, and counted once')
  }
})

t.test('who waits to be asked for a body gets the answer at once, behind all earlier ones', async t => {
  const expecting = (key: string) =>
    request('/nowhere', { method: 'POST', more: 'expect: 100-continue\r\ncontent-length: 5\r\n', key })
  for (const key of ['', gateway.keys.enterprise ?? ''])
    for (let round = 0; round < 10; round++) {
      const socket = connect(Number(new URL(gateway.apiUrl).port), '127.0.0.1')
      t.teardown(() => socket.destroy())
      let received = ''
      socket.setEncoding('latin1').on('data', (text: string) => {
        received += text
      })
      socket.write(`${request('/none', { key })}${request('/none', { key })}${expecting(key)}hello`)
      await until('all three are answered', () => received.split('x-ratelimit-limit').length === 4)
      // Answer by answer, as a client reads them.
      let rest = received
      for (let i = 0; i < 3; i++) {
        const end = rest.indexOf('\r\n\r\n') + 4
        const length = Number(/content-length: (\d+)/i.exec(rest.slice(0, end))?.[1])
        const body = rest.slice(end, end + length)
        if (!body.startsWith('{"error":') || !body.endsWith('}')) t.fail(`the body of answer ${i} is ${body}`)
        rest = rest.slice(end + length)
      }
      t.equal(rest, '')
      socket.destroy()
    }
})
