// What strangers may draw: the reference is refused beyond a rate in bytes over all of them, refusals keep their status, and
// consumers and a browser that opens /docs in quiet notice nothing.

import t from 'tap'
import { request } from 'undici'
import { openHttp2, startTlsGateway } from '../support/http2-client.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const KiB = 1024
const provider = await startProvider(t)
const small = { ABOHAWA_SERVER__UNAUTHENTICATED_RATE: '64KiB', ABOHAWA_SERVER__UNAUTHENTICATED_BURST: '1MiB' }
const sentBytes = 'abohawa_unauthenticated_sent_bytes_total'
const refusals = 'abohawa_unauthenticated_refused_total'
const document = '/api/v1/openapi.json'

const send = async (url: string, headers: Record<string, string> = {}, method = 'GET') => {
  const { statusCode, headers: received, body } = await request(url, { method: method as 'GET', headers })
  const bytes = Buffer.from(await body.arrayBuffer())
  return { status: statusCode, headers: received, bytes }
}

t.test('sixteen connections together draw the burst and then the rate, and a consumer is served', async t => {
  const clock = manualClock()
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env: small })
  const url = gateway.apiUrl + document
  const drawn = await Promise.all(Array.from({ length: 16 }, async () => [await send(url), await send(url)]))
  const answers = drawn.flat()
  const whole = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 429)
  t.equal(whole.length + refused.length, 32)
  const bytes = whole.reduce((sum, { bytes: { length } }) => sum + length, 0)
  // The last one may begin with what is left.
  t.ok(bytes > 900 * KiB && bytes < 1_250 * KiB, `${bytes} bytes`)
  for (const { headers, bytes } of refused) {
    t.match(headers, {
      'content-type': 'application/json; charset=utf-8',
      'retry-after': /^[1-9]\d*$/,
      'x-ratelimit-limit': '0',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': /^\d+$/,
      'x-request-id': /./,
    })
    t.match(JSON.parse(bytes.toString()), { error: /65536 bytes a second/, code: 'reference_busy' })
  }
  t.equal(await gateway.metric(refusals), refused.length)
  t.match(await send(url, {}, 'HEAD'), { status: 429, bytes: Buffer.alloc(0) })
  t.equal((await send(`${gateway.apiUrl}/docs`)).status, 429)

  t.equal((await gateway.get('/weather/district/3026')).status, 200, 'consumers are not concerned')
  // A missing key stays what the contract says, for a client that is mistaken and nothing worse.
  const started = performance.now()
  const mistaken = await send(`${gateway.apiUrl}/api/v1/locations`)
  t.match(mistaken, { status: 401, headers: { 'www-authenticate': /ApiKey/ } })
  t.match(JSON.parse(mistaken.bytes.toString()), { code: 'key_missing' })
  t.ok(performance.now() - started > 900, 'it is sent late')

  clock.advance(60_000)
  t.equal((await send(url)).status, 200, 'after a while there is room again')
})

t.test('all that is sent without a key counts, and nothing that is sent with one', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__CORS__ORIGINS: 'https://app.example.org' },
  })
  await gateway.get('/weather/district/3026')
  let last = 0
  const grown = async (what: string, least: number, most: number) => {
    const now = (await gateway.metric(sentBytes)) ?? 0
    t.ok(now - last >= least && now - last <= most, `${what}: ${now - last}`)
    last = now
  }
  await grown('with a key', 0, 0)
  for (const path of ['/weather/district/3026', '/locations', '/weather/x/1', '/nowhere'])
    await gateway.get(path)
  await grown('right and wrong with a key', 0, 0)
  const { apiUrl } = gateway
  await send(apiUrl + document)
  await grown('the document', 190_000, 210_000)
  const { headers } = await send(apiUrl + document, { 'accept-encoding': 'gzip' })
  await grown('in gzip', 10_000, 30_000)
  await send(apiUrl + document, { 'if-none-match': String(headers.etag) })
  await grown('304', 300, 1_200)
  await send(apiUrl + document, {}, 'HEAD')
  await grown('HEAD', 300, 1_200)
  await send(`${apiUrl}/api/v1/locations`)
  await grown('401', 300, 1_200)
  await send(`${apiUrl}/nowhere`, { 'x-api-key': 'x' }, 'POST')
  await grown('401 to another method', 300, 1_200)
  await send(`${apiUrl}/docs`, { origin: 'https://app.example.org' }, 'OPTIONS')
  await grown('OPTIONS', 300, 1_200)
  for (const bytes of [
    'GET / HTTP/1.1\r\n\r\n',
    'garbage\r\n\r\n',
    'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n',
  ]) {
    const raw = await openRaw(t, apiUrl)
    raw.send(bytes)
    await raw.answersToTheEnd()
    await grown(JSON.stringify(bytes), 300, 1_200)
  }
})

t.test('HTTP/2 draws from the same bytes', async t => {
  const gateway = await startTlsGateway(t, provider, small)
  const client = await openHttp2(t, gateway.apiUrl)
  const answers = await Promise.all(Array.from({ length: 12 }, () => client.send(document)))
  const refused = answers.filter(({ status }) => status === 429)
  t.ok(refused.length >= 5 && refused.length <= 7, `${refused.length}`)
  t.match(refused[0]?.json(), { code: 'reference_busy' })
  t.equal((await client.send('/api/v1/locations')).status, 401)
  // A client that does not wait for an answer that is late harms nobody.
  const other = await openHttp2(t, gateway.apiUrl)
  const before = await gateway.metric(sentBytes)
  void other.send('/api/v1/locations').catch(() => {})
  await until('its request is refused', async () => (await gateway.metric(sentBytes)) !== before)
  other.session.destroy()
  t.equal((await client.send('/api/v1/locations')).status, 401, 'the gateway is well')
})

t.test('a newcomer who opens the reference in quiet never meets the bound, nor do thirty', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const { apiUrl } = gateway
  const files = ['/docs?lang=en', '/docs/reference.css', '/docs/reference.js', '/docs/icon.svg', document]
  const before = (await gateway.metric(sentBytes)) ?? 0
  const tags = new Map<string, string>()
  for (const file of files) {
    const { status, headers } = await send(apiUrl + file, { 'accept-encoding': 'gzip, deflate, br' })
    t.equal(status, 200, file)
    tags.set(file, String(headers.etag))
  }
  const visit = ((await gateway.metric(sentBytes)) ?? 0) - before
  t.ok(visit < 64 * KiB, `a visit takes ${visit} bytes`)
  for (const file of files)
    t.equal((await send(apiUrl + file, { 'if-none-match': tags.get(file) ?? '' })).status, 304, file)
  const again = ((await gateway.metric(sentBytes)) ?? 0) - before - visit
  t.ok(again < 4 * KiB, `a further one ${again}`)
  // Plain, with a tool that takes no encoding.
  for (let i = 0; i < 30; i++) t.equal((await send(apiUrl + document)).status, 200)
})
