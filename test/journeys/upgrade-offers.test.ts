// Offers to upgrade the protocol, on every listener: they are ignored, and every request of a pipeline is answered in order.

import t from 'tap'
import { startTlsGateway } from '../support/http2-client.ts'
import { startProvider } from '../support/provider-process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProvider(t)
const offer = (protocol: string) =>
  `connection: upgrade, http2-settings\r\nupgrade: ${protocol}\r\nhttp2-settings: AAMAAABk\r\n`

t.test('requests before and behind an offer are answered in their order', async t => {
  const plain = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_HEALTH__PORT: '0' } })
  const tls = await startTlsGateway(t, provider)
  for (const { url, key, paths } of [
    ...[plain, tls].flatMap(({ apiUrl, keys }) =>
      ['none', keys.enterprise ?? ''].map(key => ({
        url: apiUrl,
        key,
        paths: ['/api/v1/weather/coords/25.5/89.5', '/api/v1/nothing', '/api/v1/locations/district/3026'],
      })),
    ),
    ...[plain.opsUrl, plain.healthUrl ?? ''].map(url => ({
      url,
      key: 'none',
      paths: ['/readyz', '/nothing', '/livez'],
    })),
  ]) {
    const request = (path = '', more = '', method = 'GET') =>
      `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\nx-request-id: ${path}\r\n${more}\r\n`
    const [slow, wrong, other] = paths
    const statusOf = async (path = '') => {
      const one = await openRaw(t, url)
      one.send(request(path))
      return (await one.answer()).status
    }
    const expected = [await statusOf(slow), await statusOf(wrong), await statusOf(other)]
    for (const protocol of ['h2c', 'websocket', 'x/1, h2c'])
      for (const cut of [false, true]) {
        const raw = await openRaw(t, url)
        const bytes =
          request(slow) +
          request(wrong, offer(protocol)) +
          request(other) +
          request(slow, offer(protocol)) +
          request(wrong, offer(protocol)) +
          request(other)
        if (!cut) raw.send(bytes)
        else
          for (let at = 0; at < bytes.length; at += 97) {
            raw.send(bytes.slice(at, at + 97))
            await new Promise(setImmediate)
          }
        const answers = []
        for (let i = 0; i < 6; i++) answers.push(await raw.answer())
        t.strictSame(
          answers.map(({ status }) => status),
          [...expected, ...expected],
          `${url}, ${protocol}`,
        )
        // On the kept connection, once more.
        raw.send(request(other))
        t.equal((await raw.answer()).status, expected[2])
        raw.socket.destroy()
      }
    // Node's parser loses what follows the body of such a request, and so the answer says that nothing is read behind it.
    for (const body of [
      'content-length: 5\r\n\r\nhello',
      'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    ]) {
      const raw = await openRaw(t, url)
      raw.send(
        request(other) + request(other, `${offer('h2c')}${body}`, 'POST').slice(0, -2) + request(other),
      )
      const answers = await raw.answersToTheEnd()
      t.equal(answers.length, 2)
      t.equal(answers[0]?.status, expected[2])
      const { headers = new Map() } = answers[1] ?? {}
      t.equal(headers.get('connection'), 'close')
    }
  }
})

t.test('a thousand offers on one connection are answered', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const raw = await openRaw(t, gateway.apiUrl)
  const one = `GET /api/v1/locations/district/3026 HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.keys.enterprise}\r\n${offer('h2c')}\r\n`
  raw.send(one.repeat(1_000))
  for (let i = 0; i < 1_000; i++) t.equal((await raw.answer()).status, 200)
})
