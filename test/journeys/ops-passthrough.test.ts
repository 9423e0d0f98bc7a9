// Without it, the pass-through could spend unreserved budget, or a hostile provider could run code under our origin.

import type { RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { pathFor } from '../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { horizonFor } from '../../src/weather/horizon.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { openSocket, requestBytes, sendRaw } from '../support/raw-connection.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const host = ['host: 127.0.0.1']
const nowhere = 'http://127.0.0.1:9'
const limits = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '1000000',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '1000000',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '1000000',
}
const point = 'latitude=23.8&longitude=90.4&current=temperature_2m'
const forecast = `/v1/forecast?${point}`
const metaOfRun = '/data/ecmwf_ifs/static/meta.json'

/** A gateway, what an operator sends through it, and what that cost. */
const gatewayAt = async (t: Test, providerUrl: string, env: Record<string, string> = limits) => {
  const clock = manualClock()
  const gateway = await startGateway(t, { providerUrl, clock, env })
  const through = (target = forecast, headers: readonly string[] = [], method = 'GET') =>
    sendRaw(gateway.opsUrl, requestBytes(`${method} /provider${target}`, [...host, ...headers]))
  const metric = async (name: string) => (await gateway.metric(name)) ?? 0
  const spent = () => metric('abohawa_provider_budget_used{window="day"}')
  const refused = (reason: string) => metric(`abohawa_ops_refused_total{reason="${reason}"}`)
  return { gateway, clock, through, metric, spent, refused }
}

const start = async (t: Test, answer?: RequestListener, env?: Record<string, string>) => {
  const provider = await startScriptedProvider(t, answer)
  return { provider, ...(await gatewayAt(t, provider.url, env)) }
}

/** Of a provider whose answers have this status. */
const startAnswering = async (t: Test, first: number, env?: Record<string, string>) => {
  const answered = { status: first }
  const answer: RequestListener = (_request, response) => {
    response.statusCode = answered.status
    response.end('{}')
  }
  return { answered, answer, ...(await start(t, answer, env)) }
}

t.test('a plain path of the provider’s API is let through, and sent as it was checked', async t => {
  const provider = await startScriptedProvider(t)
  const { through, spent, refused } = await gatewayAt(t, `${provider.url}/base`)
  const dates = '&start_date=2026-01-01&end_date=2026-01-02'
  const sent: [target: string, toProvider?: string][] = [
    [forecast],
    [`/v1/archive?${point}${dates}`],
    [`/v1/air-quality?${point}`],
    ['/v1/forecast?latitude=1%2C2&longitude=3,4', '/v1/forecast?latitude=1,2&longitude=3,4'],
    ['/v1/forecast?latitude=1&latitude=2&longitude=3&longitude=4', '/v1/forecast?latitude=1,2&longitude=3,4'],
    ['/v1/forecast?l%61titude=1&timezone=Asia/Dhaka', '/v1/forecast?latitude=1&timezone=Asia%2FDhaka'],
    ['/v1/forecast?latitude=1%26forecast_days=16', '/v1/forecast?latitude=1%26forecast_days%3D16'],
    ['/v1/forecast?latitude=1&longitude=3&apikey=callers-own', '/v1/forecast?latitude=1&longitude=3'],
    ['/v1/forecast?', '/v1/forecast'],
    [metaOfRun],
    ['/data/dwd_icon/2026/01/31/0000Z.om'],
  ]
  for (const [target, toProvider = target] of sent) {
    const { status, text } = await through(target)
    t.equal(status, 200, `${target}: ${text}`)
    t.hasStrict(provider.requests.at(-1), { method: 'GET', target: `/base${toProvider}` })
  }
  t.hasStrict(await through(forecast, [], 'HEAD'), { status: 200, text: '' })
  t.equal(provider.requests.at(-1)?.method, 'HEAD')

  const before = { requests: provider.requests.length, spent: await spent() }
  // The path is checked as it came: nothing on the way to here has decoded or shortened it.
  const paths = [
    ...['/v1/forecast/', '/V1/Forecast', '/control', '/', '/v1//forecast', '//v1/forecast', '/../control'],
    ...['/v1/../v1/forecast', '/v1/%2e%2e/control', '/v1%2fforecast', '/v1\\forecast', '/v1/forecast%00'],
    ...['/v1/%66orecast', '/v1/%2566orecast', '/v1/forecast%0d%0aGET%20/x'],
  ]
  const refusals: [target: string, status: number, sentence: RegExp][] = [
    ...paths.map((path): [string, number, RegExp] => [path, 404, /^the path must be \/v1\/<API> /]),
    ['/v1/forecast%zz', 400, /^the path must be percent-encoded UTF-8/],
    ['?latitude[]=1&latitude[]=2', 400, /^the parameters must be lat.*, got "latitude\[\]"$/],
    ['?start_date=1940', 400, /^start_date must be YYYY-MM-DD or YYYY-MM-DDThh:mm, got "1940"$/],
    ['?past_days=1&past_days=16', 400, /^past_days must be given only once$/],
    ['?past_days=1e3', 400, /^past_days must be an integer of at most 5 digits, got "1e3"$/],
    ['?past_days=', 400, /^past_days must be .*, got ""$/],
    [`${metaOfRun}?x=1`, 400, /^the parameters must be none, got "x"$/],
  ]
  for (const [given, status, sentence] of refusals) {
    const target = given.startsWith('?') ? `/v1/forecast${given}` : given
    t.match(await through(target), { status, body: { error: sentence } }, target)
  }
  t.strictSame({ requests: provider.requests.length, spent: await spent() }, before, 'nothing was sent')
  t.strictSame([await refused('path'), await refused('query')], [paths.length + 1, 6])
})

t.test('the key is ours and everything else of the caller stays here', async t => {
  const { provider, through } = await start(t, undefined, { ABOHAWA_PROVIDER__API_KEY: 'provider-secret-1' })
  const names = 'x-api-key authorization cookie referer x-forwarded-for user-agent if-range'.split(' ')
  const headers = names.map(name => `${name}: callers`)
  const { status } = await through(`${forecast}&apikey=callers`, headers)
  t.equal(status, 200)
  const [request] = provider.requests
  t.hasStrict(request?.headers, { 'x-api-key': 'provider-secret-1' })
  t.notMatch(JSON.stringify(request), /callers/)
})

t.test('every request is weighed and reserved in the budget, in whole cells, before it is sent', async t => {
  const { through, spent } = await start(t)
  const unit = 3
  const many = `latitude=${'21,'.repeat(11)}21&longitude=90`
  const names = (count: number) => Array.from({ length: count }, (_, i) => `v${i}`).join(',')
  for (const [query, units] of [
    [point, 1],
    [`${many}&hourly=${names(10)}&past_days=92&forecast_days=16`, 31],
    [`latitude=1&longitude=1&hourly=${names(34)}&forecast_days=16`, 2],
  ] as const) {
    const before = await spent()
    t.equal((await through(`/v1/forecast?${query}`)).status, 200)
    t.equal((await spent()) - before, units * unit, query)
  }

  // The gateway's own request has the same weight here as at the provider.
  const provider = await startProviderHere(t)
  const whole = await gatewayAt(t, provider.url)
  const cells = [1, 2, 3].map(i => createGrid(0.1).cellOf(21 + i, 90))
  const own = pathFor(cells, horizonFor(13 * 3_600_000, 48), 'Asia/Dhaka')
  t.equal((await whole.through(own)).status, 200)
  t.equal(await whole.spent(), 3 * unit)
  t.equal(Math.ceil((await provider.state()).weight / unit), 3)
  await whole.through(metaOfRun)
  t.equal(await whole.spent(), 3 * unit, 'the run’s page weighs nothing there, and nothing here')
})

t.test('a request beyond the budget is not sent, and the error says when it can be', async t => {
  const { provider, through, refused } = await start(t, undefined, {
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
  })
  const places = `latitude=${'1,'.repeat(299)}1&longitude=${'1,'.repeat(299)}1`
  const heavy = `/v1/forecast?${places}&hourly=a,b&past_days=92&models=m,n,o`
  const error = /^the provider budget has no room for a request of weight [\d.]+; try again at 20\d\d-.*Z$/
  t.match(await through(heavy), { status: 429, body: { error } })
  t.strictSame(provider.requests, [])
  t.equal(await refused('budget'), 1)
  const unlimited = await gatewayAt(t, provider.url, {})
  t.equal((await unlimited.through(heavy)).status, 200, 'without limits it leaves')
})

t.test('a failed request costs what the provider counts for it', async t => {
  const { answered, provider, clock, through, spent } = await startAnswering(t, 200)
  const many = `/v1/forecast?latitude=${'1,'.repeat(29)}1&longitude=1`
  for (const [status, cost] of [
    [200, 30],
    [400, 1],
    [429, 0],
    [500, 1],
    [503, 1],
  ] as const) {
    answered.status = status
    const before = { spent: await spent(), requests: provider.requests.length }
    t.equal((await through(many)).status, status)
    t.equal((await spent()) - before.spent, cost, `${status}`)
    t.equal(provider.requests.length - before.requests, 1, 'asked once, whatever it answers')
    if (status !== 429) continue
    const closed = { status: 429, body: { error: /has no room .*; try again at 2026-11-21T06:01:02/ } }
    t.match(await through(many), closed)
    t.equal(provider.requests.length - before.requests, 1, 'its limits hold for whoever asks next')
    clock.advance(2 * 60_000)
  }
  const lost = await gatewayAt(t, nowhere)
  const error = /^the provider did not answer: .*ECONNREFUSED/
  t.match(await lost.through(many), { status: 502, body: { error } })
  t.equal(await lost.spent(), 0)
})

t.test('a provider with a certificate that nobody vouches for gets neither request nor key', async t => {
  const provider = await startScriptedProvider(t, undefined, { secure: true })
  const { through } = await gatewayAt(t, provider.url, { ABOHAWA_PROVIDER__API_KEY: 'provider-secret-1' })
  const error = /^the provider did not answer: .*certificate/
  t.match(await through(), { status: 502, body: { error } })
  t.strictSame(provider.requests, [])
})

t.test('of a hostile answer only the status and inert bytes are handed on', async t => {
  let type: string | undefined
  const { through } = await start(t, (_request, response) => {
    response.writeHead(200, {
      ...(type && { 'content-type': type }),
      'set-cookie': 'session=stolen',
      'content-security-policy': "default-src * 'unsafe-inline'",
      'access-control-allow-origin': '*',
      'x-content-type-options': 'sniff',
      'cross-origin-resource-policy': 'cross-origin',
      location: 'http://evil.example',
      'keep-alive': 'timeout=1',
      'x-evil': '1',
    })
    response.end('<script>alert(1)</script>')
  })
  const types: [given: string | undefined, handedOn: string][] = [
    ['application/json;charset=utf-7', 'application/json; charset=utf-8'],
    ['TEXT/HTML; charset=x', 'text/plain; charset=utf-8'],
    ['text/csv', 'text/csv; charset=utf-8'],
    ['text/javascript', 'text/plain; charset=utf-8'],
    ['image/svg+xml', 'application/octet-stream'],
    [undefined, 'application/octet-stream'],
  ]
  for (const [given, handedOn] of types) {
    type = given
    const { headers, status, text } = await through()
    t.match(text, /alert/, 'the bytes are all there')
    t.equal(status, 200)
    const wanted = {
      'content-type': handedOn,
      'x-content-type-options': 'nosniff',
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
      date: '',
      connection: 'close',
      'transfer-encoding': 'chunked',
    }
    t.strictSame({ ...headers, date: '' }, wanted, String(given))
  }
})

t.test('what a comparison needs goes both ways, and the bytes come as the provider encoded them', async t => {
  const zipped = gzipSync('{"a":1}')
  const validators = { etag: '"v1"', 'last-modified': 'Sat, 21 Nov 2026 06:00:00 GMT' }
  const { provider, gateway, through, spent, metric } = await start(t, ({ headers }, response) => {
    if (headers['if-none-match'] === '"v1"') return void response.writeHead(304, validators).end()
    const isZipped = headers['accept-encoding'] === 'gzip'
    const encoding = isZipped ? { 'content-encoding': 'gzip' } : {}
    response.writeHead(200, { ...validators, 'content-type': 'application/json', ...encoding })
    response.end(isZipped ? zipped : '{"a":1}')
  })
  const plain = { ...validators, 'content-encoding': undefined }
  t.match(await through(), { status: 200, text: /\{"a":1\}/, headers: plain })
  t.equal(provider.requests.at(-1)?.headers['accept-encoding'], undefined)
  const gzip = { 'accept-encoding': 'gzip' }
  const response = await fetch(`${gateway.opsUrl}/provider${forecast}`, { headers: gzip })
  t.equal(response.headers.get('content-encoding'), 'gzip')
  t.strictSame(await response.json(), { a: 1 })
  const head = await through(forecast, ['accept-encoding: gzip'], 'HEAD')
  t.hasStrict(head, { status: 200, text: '', headers: validators })
  const before = await spent()
  const known = await through(forecast, ['if-none-match: "v1"'])
  t.hasStrict(known, { status: 304, text: '', headers: validators })
  t.equal((await spent()) - before, 3, 'an answer, which the provider may count as any other')
  t.equal(await metric('abohawa_provider_request_duration_seconds_count{outcome="ok"}'), 4)
})

t.test('of an error that comes zipped the reason is read', async t => {
  const { through } = await start(t, (_request, response) => {
    response.writeHead(429, { 'content-encoding': 'gzip' })
    response.end(gzipSync('{"error":true,"reason":"Daily API request limit exceeded."}'))
  })
  t.equal((await through()).status, 429)
  t.match(await through(), { body: { error: /try again at 2026-11-22T00:00:02/ } })
})

t.test('an endless response is cut off in time, and few requests may wait', async t => {
  const mebibyte = Buffer.alloc(1024 * 1024)
  let pace: 'flood' | 'trickle' | 'silent' | 'long' = 'flood'
  let open = 0
  let kept = 0
  const answer: RequestListener = (_request, response) => {
    let ticks = 0
    open += 1
    response.once('close', () => {
      open -= 1
      clearInterval(ticking)
    })
    // 200 of them last twice as long as the gateway's timer, which is in this process: a busy machine delays both.
    const ticking = setInterval(() => {
      ticks += 1
      if (pace === 'trickle') response.write('x')
      if (ticks < 200) return
      kept += 1
      response.destroy()
    }, 20)
    if (pace === 'silent' || pace === 'trickle') return
    if (pace === 'long') response.writeHead(200, { 'content-length': 1e12 })
    const send = (): void => {
      if (response.destroyed) return
      if (response.write(mebibyte)) setImmediate(send)
      else response.once('drain', send)
    }
    send()
  }
  const provider = await startScriptedProvider(t, answer)
  const often = { ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100' }
  const hasty = await gatewayAt(t, provider.url, {
    ...often,
    ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '2s',
    ABOHAWA_PROVIDER__TIMEOUT: '2s',
  })
  for (const slow of ['flood', 'trickle', 'long'] as const) {
    pace = slow
    const response = await fetch(`${hasty.gateway.opsUrl}/provider${forecast}`)
    t.equal(response.status, 200, 'what has come is handed on')
    await t.rejects(response.arrayBuffer(), 'and it is seen to be incomplete')
    await until('the connection to the provider is let go', () => open === 0)
  }
  const { through, refused } = await gatewayAt(t, provider.url, {
    ...often,
    ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '1m',
    ABOHAWA_PROVIDER__TIMEOUT: '2s',
  })
  pace = 'silent'
  const late = /^the provider did not answer: no response from the provider within 2000 ms$/
  t.match(await through(), { status: 502, body: { error: late } })
  const answers = await Promise.all(Array.from({ length: 12 }, () => through()))
  const busy = answers.filter(({ status }) => status === 503)
  t.equal(busy.length, 8)
  const sentence = '4 requests to the provider are in progress; try again when one has ended'
  t.hasStrict(busy[0], { body: { error: sentence } })
  t.equal(await refused('busy'), 8)
  pace = 'flood'
  await until('no connection to the provider is left behind', () => open === 0)

  // A client that disconnects frees its place at once, long before the timeout.
  pace = 'trickle'
  const { gateway: patient } = await gatewayAt(t, provider.url, {})
  const leaving = openSocket(patient.opsUrl)
  leaving.write(requestBytes(`GET /provider${forecast}`, host))
  await until('the provider has a request', () => open > 0)
  leaving.destroy()
  await until('the connection to the provider is let go', () => open === 0)
  t.equal(kept, 0, 'the gateway lets go first')
})

t.test('a provider that leaves a request unanswered is too slow, and so is no reader', async t => {
  const isOpen = 'abohawa_provider_circuit{state="open"}'
  const count = (outcome: string) => `abohawa_provider_request_duration_seconds_count{outcome="${outcome}"}`
  let pace: 'hanging' | 'long' | 'silent' = 'hanging'
  const answer: RequestListener = (_request, response) => {
    if (pace === 'hanging') response.write('{')
    if (pace === 'long') response.end(Buffer.alloc(64 * 1024 * 1024))
  }
  const { through, gateway, metric, refused } = await start(t, answer, {
    ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '2s',
    ABOHAWA_PROVIDER__TIMEOUT: '1m',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '1',
  })
  const begun = await fetch(`${gateway.opsUrl}/provider${forecast}`)
  await t.rejects(begun.arrayBuffer())
  await until('it is counted', async () => (await metric(count('left'))) === 1)
  pace = 'long'
  const reader = openSocket(gateway.opsUrl).pause()
  t.teardown(() => reader.destroy())
  reader.write(requestBytes(`GET /provider${forecast}`, host))
  await until('it is counted', async () => (await metric(count('left'))) === 2)
  t.equal(await refused('timeout'), 0, 'long before its connection is idle for too long')
  pace = 'silent'
  const error = 'the provider did not answer: its answer was not whole within 2000 ms of the request'
  t.match(await through(), { status: 502, body: { error } })
  await until('it is counted', async () => (await metric(count('provider_timeout'))) === 1)
  t.equal(await metric(count('left')), 2)
  t.equal(await metric(isOpen), 0, 'most of the time may have been the wait for its turn')
})

t.test('operators and consumers share the connections to the provider, and take turns', async t => {
  for (const most of [1, 3]) {
    let open = 0
    let seen = 0
    const held: (() => void)[] = []
    const hold: RequestListener = (_request, response) => {
      open += 1
      seen = Math.max(seen, open)
      held.push(() => {
        open -= 1
        response.end('{}')
      })
    }
    const { provider, gateway, through } = await start(t, hold, {
      ABOHAWA_PROVIDER__MAX_CONCURRENT: String(most),
      ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '1',
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
    })
    const asked = Promise.all([
      ...[1, 2, 3].map(i => gateway.get(`/weather/coords/2${i}.1/89.1`)),
      ...[1, 2, 3, 4].map(() => through()),
    ])
    await until('as many requests are open as may be', () => open >= Math.min(most, 2))
    for (let answered = 0; answered < 7; answered += 1) {
      await until('a request is open', () => held.length > 0)
      held.shift()?.()
    }
    const operators = (await asked).slice(3)
    t.ok(operators.every(({ status }) => status === 200))
    t.equal(provider.requests.length, 7)
    t.ok(seen <= most, `${seen} at once with provider.maxConcurrent ${most}`)
    if (most > 1) t.ok(seen > 1, 'more than one where more are allowed')
  }
})

t.test('what fails for an operator opens the circuit, and an open circuit holds for operators', async t => {
  const hour = {
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '1h',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '1h',
  }
  const isOpen = 'abohawa_provider_circuit{state="open"}'
  const error = /^the provider circuit is open after failures; try again at 20/
  const refusal = { status: 503, body: { error } }

  const { answered, provider, ...one } = await startAnswering(t, 500, hour)
  for (let n = 0; n < 3; n += 1) t.equal((await one.through()).status, 500)
  t.equal(await one.metric(isOpen), 1)
  const asked = provider.requests.length
  t.match(await one.through(), refusal)
  t.match(await one.through(metaOfRun), refusal)
  t.equal((await one.gateway.get('/weather/coords/23.1/90.1')).status, 500)
  t.equal(provider.requests.length, asked, 'nobody asks any more')
  t.equal(await one.refused('circuit'), 2)
  const counted = 'abohawa_provider_request_duration_seconds_count{outcome="provider_failing"}'
  t.equal(await one.metric(counted), 3, 'counted among the requests to the provider')

  // What may be the fault of the question says nothing of the provider.
  const third = await gatewayAt(t, provider.url, hour)
  for (const status of [400, 401, 403, 404, 302]) {
    answered.status = status
    for (let n = 0; n < 3; n += 1)
      for (const target of [forecast, '/data/nothing/static/meta.json'])
        t.equal((await third.through(target)).status, status)
  }
  t.equal(await third.metric(isOpen), 0)
})

t.test('a request that waits for its turn is told in time, and is not sent any more', async t => {
  const { provider, gateway, through, metric } = await start(t, () => {}, {
    ABOHAWA_PROVIDER__MAX_CONCURRENT: '1',
    ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '1',
    ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '3s',
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
  })
  const first = gateway.get('/weather/coords/21.1/89.1')
  await until('the provider is asked for a cell', () => provider.requests.length === 1)
  const second = gateway.get('/weather/coords/22.1/89.1')
  await until('another cell waits', () => metric('abohawa_provider_waiting_cells'))
  const error = 'the provider did not answer: its answer was not whole within 3000 ms of the request'
  t.match(await through(), { status: 502, body: { error } })
  for (const { status } of await Promise.all([first, second])) t.equal(status, 500)
  const third = gateway.get('/weather/coords/23.1/89.1')
  await until('the next one has its turn', () => provider.requests.length >= 3)
  t.notOk(provider.requests.some(({ target }) => target.includes(point)))
  await third
})
