// Offers to upgrade the protocol: they are ignored. Node's parser loses what follows them on the connection, and so
// the answer says that nothing is read behind it.

import t from 'tap'
import { startTlsGateway } from '../support/http2-client.ts'
import { startProvider } from '../support/provider-process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProvider(t)
const offer = (protocol: string) =>
  `connection: upgrade, http2-settings\r\nupgrade: ${protocol}\r\nhttp2-settings: AAMAAABk\r\n`

t.test('requests up to an offer are answered in their order, and the connection ends behind it', async t => {
  const plain = await startGateway(t, { providerUrl: provider.url })
  const tls = await startTlsGateway(t, provider)
  for (const { url, key, paths } of [
    ...[plain, tls].flatMap(({ apiUrl, keys }) =>
      ['none', keys.enterprise ?? ''].map(key => ({
        url: apiUrl,
        key,
        paths: ['/api/v1/weather/coords/25.5/89.5', '/api/v1/locations/district/3026'],
      })),
    ),
  ]) {
    const request = (path = '', more = '', method = 'GET') =>
      `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\n${more}\r\n`
    const [slow, other] = paths
    const statusOf = async (path = '') => {
      const one = await openRaw(t, url)
      one.send(request(path))
      return (await one.answer()).status
    }
    const expected = [await statusOf(slow), await statusOf(other)]
    for (const protocol of ['h2c', 'websocket', 'x/1, h2c'])
      for (const body of ['', 'content-length: 5\r\n\r\nhello']) {
        const raw = await openRaw(t, url)
        const last = body === '' ? request(other, offer(protocol)) : undefined
        raw.send(
          request(slow) + (last ?? request(other, `${offer(protocol)}${body}`).slice(0, -2)) + request(other),
        )
        const answers = await raw.answersToTheEnd()
        t.equal(answers.length, 2, `${url}, ${protocol}`)
        if (last)
          t.strictSame(
            answers.map(({ status }) => status),
            expected,
          )
        t.equal(answers[1]?.headers.get('connection'), 'close')
      }
  }
})
