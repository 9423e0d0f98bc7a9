// The pass-through to the provider: the request is sent exactly as it was checked, everything that costs is weighed and
// reserved in the budget, and a hostile provider gains nothing by its response.

import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { readForecastRequest } from '../../simulator/forecast-request.ts'
import { parametersIn } from '../../simulator/parameters.ts'
import { pathFor } from '../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { horizonFor } from '../../src/weather/horizon.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { openSocket, requestBytes, sendRaw } from '../support/raw-http.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const host = ['host: 127.0.0.1']
const through = (gateway: TestGateway, target: string, method = 'GET') =>
  sendRaw(gateway.opsUrl, requestBytes(`${method} /provider${target}`, host))
const metric = async (gateway: TestGateway, name: RegExp) =>
  Number(
    new RegExp(`^${name.source} (\\S+)$`, 'm').exec(
      (await sendRequest(`${gateway.opsUrl}/metrics`)).text,
    )?.[1] ?? 0,
  )
const spent = (gateway: TestGateway) => metric(gateway, /abohawa_provider_budget_used\{window="day"\}/)
const limits = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '1000000',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '1000000',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '1000000',
}
const point = 'latitude=23.8&longitude=90.4&current=temperature_2m'

t.test('a plain path of the provider’s API is let through, and sent as it was judged', async t => {
  const provider = await startScriptedProvider(t)
  const gateway = await startGateway(t, { providerUrl: `${provider.url}/base`, env: limits })
  const sent: [target: string, toProvider: string][] = [
    [`/v1/forecast?${point}`, `/base/v1/forecast?${point}`],
    [
      `/v1/archive?${point}&start_date=2026-01-01&end_date=2026-01-02`,
      `/base/v1/archive?${point}&start_date=2026-01-01&end_date=2026-01-02`,
    ],
    [`/v1/air-quality?${point}`, `/base/v1/air-quality?${point}`],
    ['/v1/forecast?latitude=1%2C2&longitude=3,4', '/base/v1/forecast?latitude=1,2&longitude=3,4'],
    [
      '/v1/forecast?latitude=1&latitude=2&longitude=3&longitude=4',
      '/base/v1/forecast?latitude=1,2&longitude=3,4',
    ],
    [
      '/v1/forecast?l%61titude=1&longitude=3&timezone=Asia/Dhaka',
      '/base/v1/forecast?latitude=1&longitude=3&timezone=Asia%2FDhaka',
    ],
    [
      '/v1/forecast?latitude=1%26forecast_days=16&longitude=3',
      '/base/v1/forecast?latitude=1%26forecast_days%3D16&longitude=3',
    ],
    ['/v1/forecast?latitude=1&longitude=3&apikey=callers-own', '/base/v1/forecast?latitude=1&longitude=3'],
    ['/v1/forecast?apikey=callers-own', '/base/v1/forecast'],
    ['/v1/forecast?', '/base/v1/forecast'],
    ['/data/ecmwf_ifs/static/meta.json', '/base/data/ecmwf_ifs/static/meta.json'],
    ['/data/dwd_icon/2026/01/31/0000Z.om', '/base/data/dwd_icon/2026/01/31/0000Z.om'],
  ]
  for (const [target, toProvider] of sent) {
    const { status, text } = await through(gateway, target)
    t.equal(status, 200, `${target}: ${text}`)
    t.match(provider.requests.at(-1), { method: 'GET', target: toProvider })
  }
  t.match(await through(gateway, `/v1/forecast?${point}`, 'HEAD'), { status: 200, text: '' })
  t.equal(provider.requests.at(-1)?.method, 'HEAD')

  const requestsBefore = provider.requests.length
  const before = await spent(gateway)
  const refused: [target: string, status: number, sentence: RegExp][] = [
    [
      '/v1/forecast%3flatitude=1',
      404,
      /^the path "\/v1\/forecast%3flatitude=1" is not let through; allowed: \/v1\/<API> and \/data\/<file>$/,
    ],
    ...[
      '/v1/forecast/',
      '/v1/forecast;x',
      '/V1/Forecast',
      '/control',
      '/',
      '/data//static/meta.json',
      '/data/x/%2e%2e/%2e%2e/control',
      '/v1//forecast',
      '//v1/forecast',
      '/../control',
      '/v1/../v1/forecast',
      '/v1/./forecast',
      '/v1/%2e%2e/control',
      '/v1%2fforecast',
      '/v1%5Cforecast',
      '/v1\\forecast',
      '/v1/%66orecast',
      '/v1/%2566orecast',
      '/v1/forecast%00',
      '/v1/forecast%0d%0aGET%20/x',
    ].map((target): [string, number, RegExp] => [target, 404, /is not let through; allowed: /]),
    ['/v1/forecast%ff', 400, /is not percent-encoded UTF-8/],
    ['/v1/forecast%zz', 400, /is not percent-encoded UTF-8/],
    [`/v1/${'x'.repeat(300)}`, 404, /^the path "\/v1\/x{50,80}…" is not let through/],
    [
      '/v1/forecast?latitude[]=1&latitude[]=2',
      400,
      /^the parameter "latitude\[\]" is not let through; allowed: latitude, longitude, /,
    ],
    ['/v1/forecast?bounding_box=20,87,27,93', 400, /^the parameter "bounding_box" is not let through/],
    [
      '/v1/archive?start_date=1940&end_date=2026-01-01',
      400,
      /^start_date is "1940"; allowed: YYYY-MM-DD or YYYY-MM-DDThh:mm$/,
    ],
    [
      '/v1/forecast?forecast_days=1&forecast_days=16',
      400,
      /^forecast_days is given more than once; allowed: at most once$/,
    ],
    [
      '/v1/forecast?forecast_days=-1',
      400,
      /^forecast_days is "-1"; allowed: a whole number of at most 5 digits$/,
    ],
    ['/v1/forecast?past_days=1e3', 400, /^past_days is "1e3"; allowed: /],
    ['/v1/forecast?past_days=', 400, /^past_days is ""; allowed: /],
    ['/data/ecmwf_ifs/static/meta.json?x=1', 400, /^the parameter "x" is not let through; allowed: none$/],
  ]
  for (const [target, status, sentence] of refused)
    t.match(await through(gateway, target), { status, body: { error: sentence } }, target)
  t.equal(provider.requests.length, requestsBefore, 'nothing of it reached the provider')
  t.equal(await spent(gateway), before, 'nor was anything spent')
  t.ok((await metric(gateway, /abohawa_ops_refused_total\{reason="path"\}/)) > 20)
  t.ok((await metric(gateway, /abohawa_ops_refused_total\{reason="query"\}/)) > 5)
})

t.test('the key is ours and everything else of the caller stays here', async t => {
  const provider = await startScriptedProvider(t)
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_PROVIDER__API_KEY: 'provider-secret-1' },
  })
  const answer = await sendRaw(
    gateway.opsUrl,
    requestBytes(`GET /provider/v1/forecast?${point}&apikey=callers`, [
      ...host,
      'x-api-key: callers',
      'authorization: Bearer callers',
      'cookie: a=callers',
      'referer: http://callers',
      'x-forwarded-for: callers',
      'user-agent: callers',
      'if-range: "callers"',
    ]),
  )
  t.equal(answer.status, 200)
  const [request] = provider.requests
  t.match(request?.headers, { 'x-api-key': 'provider-secret-1' })
  t.notMatch(JSON.stringify(request), /callers/)
})

t.test(
  'every request is weighed by the provider’s formula, and is reserved in the budget before it is sent',
  async t => {
    // Reads and weighs a request as the simulated provider does, without the weather, which takes it seconds.
    let counted = 0
    const weighing = await startScriptedProvider(t, ({ url = '' }, response) => {
      const request = readForecastRequest(parametersIn(url.split('?')[1] ?? ''))
      counted += request?.weight ?? 0
      response.end('{}')
    })
    const gateway = await startGateway(t, { providerUrl: weighing.url, env: limits })
    const unit = 3
    const names = ['temperature_2m', 'weather_code', 'rain', 'cloud_cover', 'is_day', 'snowfall', 'showers']
    const daily = ['weather_code', 'temperature_2m_max', 'temperature_2m_min']
    const some = (from: readonly string[]) => fc.subarray([...from], { minLength: 1 })
    const maybe = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined })
    const queries = fc.record({
      points: fc.integer({ min: 1, max: 12 }),
      repeated: fc.boolean(),
      current: maybe(some(names)),
      hourly: maybe(some(names)),
      minutely_15: maybe(some(names)),
      daily: maybe(some(daily)),
      forecast_days: maybe(fc.integer({ min: 0, max: 16 })),
      past_days: maybe(fc.integer({ min: 0, max: 92 })),
    })
    const queryOf = ({
      points,
      repeated,
      ...rest
    }: typeof queries extends fc.Arbitrary<infer Q> ? Q : never) => {
      const list = (name: string, values: readonly unknown[]) =>
        repeated ? values.map(value => `${name}=${value}`).join('&') : `${name}=${values.join('%2C')}`
      const places = Array.from({ length: points }, (_, i) => i)
      return [
        list(
          'latitude',
          places.map(i => 21 + i / 10),
        ),
        list(
          'longitude',
          places.map(() => 90),
        ),
        ...Object.entries(rest).flatMap(([name, value]) =>
          value === undefined ? [] : Array.isArray(value) ? list(name, value) : `${name}=${value}`,
        ),
      ].join('&')
    }
    await fc.assert(
      fc.asyncProperty(queries, async query => {
        const before = await spent(gateway)
        counted = 0
        const { status, text } = await through(gateway, `/v1/forecast?${queryOf(query)}`)
        t.equal(status, 200, text.slice(0, 200))
        const taken = (await spent(gateway)) - before
        t.ok(counted > 0)
        t.equal(
          Number(taken.toFixed(3)),
          unit * Math.max(1, Math.ceil(Number((counted / unit).toFixed(6)))),
          `${counted} counted`,
        )
      }),
      { numRuns: 40 },
    )

    // The gateway's own request has the same weight here as at the provider.
    const provider = await startProviderHere(t)
    const whole = await startGateway(t, { providerUrl: provider.url, env: limits })
    const grid = createGrid(0.1)
    const cells = [1, 2, 3].map(i => grid.cellOf(21 + i, 90))
    const before = await spent(whole)
    const own = pathFor(cells, horizonFor(13 * 3_600_000, 48), 'Asia/Dhaka')
    t.equal((await through(whole, own)).status, 200)
    t.equal((await spent(whole)) - before, 3 * unit)
    t.equal(Math.ceil((await provider.state()).weight / unit), 3)

    const free = await spent(whole)
    await through(whole, '/data/ecmwf_ifs/static/meta.json')
    t.equal(await spent(whole), free, 'the run’s page weighs nothing there, and nothing here')
  },
)

t.test('a request beyond the budget is not sent, and the error says when it can be', async t => {
  const provider = await startScriptedProvider(t)
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const limited = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600' },
  })
  const heavy = `/v1/forecast?latitude=${'1,'.repeat(299)}1&longitude=${'1,'.repeat(299)}1&hourly=a,b&past_days=92&models=m,n,o`
  const answer = await through(limited, heavy)
  t.match(answer, {
    status: 429,
    body: {
      error:
        /^the request weighs [\d.]+, for which the provider's budget has no room; ask again from 20\d\d-.*Z$/,
    },
  })
  t.strictSame(provider.requests, [])
  t.equal(await metric(limited, /abohawa_ops_refused_total\{reason="budget"\}/), 1)
  t.equal((await through(gateway, heavy)).status, 200, 'without limits it leaves')
})

t.test('a failed request costs what the provider counts for it', async t => {
  let status = 200
  const provider = await startScriptedProvider(t, (_request, response) => {
    response.statusCode = status
    response.end('{}')
  })
  const clock = manualClock()
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env: limits })
  const many = `/v1/forecast?latitude=${'1,'.repeat(29)}1&longitude=1`
  const costs: [status: number, cost: number][] = [
    [200, 30],
    [400, 1],
    [429, 0],
    [500, 1],
    [503, 1],
  ]
  for (const [answered, cost] of costs) {
    status = answered
    const before = { spent: await spent(gateway), requests: provider.requests.length }
    t.equal((await through(gateway, many)).status, answered)
    t.equal((await spent(gateway)) - before.spent, cost, `${answered}`)
    t.equal(provider.requests.length - before.requests, 1, 'asked once, whatever it answers')
    if (answered === 429) {
      const closed = await through(gateway, many)
      t.match(closed, { status: 429, body: { error: /has no room; ask again from 2026-11-21T06:01:02/ } })
      t.equal(provider.requests.length - before.requests, 1, 'its limits hold for whoever asks next')
      clock.advance(2 * 60_000)
    }
  }
  const lost = await startGateway(t, { providerUrl: 'http://127.0.0.1:9', env: limits })
  t.match(await through(lost, many), {
    status: 502,
    body: { error: /^the provider did not answer: .*ECONNREFUSED/ },
  })
  t.equal(await spent(lost), 0)
})

t.test('a provider with a certificate that nobody vouches for gets neither request nor key', async t => {
  const provider = await startScriptedProvider(t, undefined, { secure: true })
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_PROVIDER__API_KEY: 'provider-secret-1' },
  })
  t.match(await through(gateway, `/v1/forecast?${point}`), {
    status: 502,
    body: { error: /^the provider did not answer: .*certificate/ },
  })
  t.strictSame(provider.requests, [])
})

t.test('of a hostile answer only the status and inert bytes are handed on', async t => {
  let type: string | undefined
  const provider = await startScriptedProvider(t, (_request, response) => {
    response.writeHead(200, {
      ...(type && { 'content-type': type }),
      'set-cookie': 'session=stolen',
      'content-security-policy': "default-src * 'unsafe-inline'",
      'access-control-allow-origin': '*',
      'x-content-type-options': 'sniff',
      'cross-origin-resource-policy': 'cross-origin',
      'clear-site-data': '"*"',
      location: 'http://evil.example',
      link: '<http://evil.example>; rel=preload',
      refresh: '0; url=http://evil.example',
      'service-worker-allowed': '/',
      'keep-alive': 'timeout=1',
      'x-evil': '1',
    })
    response.end('<script>alert(1)</script>')
  })
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const types: [given: string | undefined, handedOn: string][] = [
    ['application/json; charset=utf-8', 'application/json; charset=utf-8'],
    ['application/json;charset=utf-7', 'application/json; charset=utf-8'],
    ['text/html', 'text/plain; charset=utf-8'],
    ['TEXT/HTML; charset=x', 'text/plain; charset=utf-8'],
    ['text/csv', 'text/csv; charset=utf-8'],
    ['text/javascript', 'text/plain; charset=utf-8'],
    ['image/svg+xml', 'application/octet-stream'],
    ['application/xhtml+xml', 'application/octet-stream'],
    ['multipart/x-mixed-replace', 'application/octet-stream'],
    [undefined, 'application/octet-stream'],
  ]
  for (const [given, handedOn] of types) {
    type = given
    const { headers, status, text } = await through(gateway, `/v1/forecast?${point}`)
    t.match(text, /alert/, 'the bytes are all there')
    t.equal(status, 200)
    t.strictSame(
      { ...headers, date: '' },
      {
        'content-type': handedOn,
        'x-content-type-options': 'nosniff',
        'content-security-policy':
          "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
        date: '',
        connection: 'close',
        'transfer-encoding': 'chunked',
      },
      String(given),
    )
  }
})

t.test('what a comparison needs goes both ways, and the bytes come as the provider encoded them', async t => {
  const zipped = gzipSync('{"a":1}')
  const provider = await startScriptedProvider(t, ({ headers }, response) => {
    const validators = { etag: '"v1"', 'last-modified': 'Sat, 21 Nov 2026 06:00:00 GMT' }
    if (headers['if-none-match'] === '"v1"') return void response.writeHead(304, validators).end()
    const isZipped = headers['accept-encoding'] === 'gzip'
    response.writeHead(200, {
      ...validators,
      'content-type': 'application/json',
      ...(isZipped && { 'content-encoding': 'gzip' }),
    })
    response.end(isZipped ? zipped : '{"a":1}')
  })
  const gateway = await startGateway(t, { providerUrl: provider.url, env: limits })
  const ask = (headers: string[] = [], method = 'GET') =>
    sendRaw(gateway.opsUrl, requestBytes(`${method} /provider/v1/forecast?${point}`, [...host, ...headers]))
  const validators = { etag: '"v1"', 'last-modified': 'Sat, 21 Nov 2026 06:00:00 GMT' }
  t.match(await ask(), {
    status: 200,
    text: /\{"a":1\}/,
    headers: { ...validators, 'content-encoding': undefined },
  })
  t.equal(provider.requests.at(-1)?.headers['accept-encoding'], undefined)
  const response = await fetch(`${gateway.opsUrl}/provider/v1/forecast?${point}`, {
    headers: { 'accept-encoding': 'gzip' },
  })
  t.equal(response.headers.get('content-encoding'), 'gzip')
  t.strictSame(await response.json(), { a: 1 })
  t.match(await ask(['accept-encoding: gzip'], 'HEAD'), { status: 200, text: '', headers: validators })
  const before = await spent(gateway)
  t.match(await ask(['if-none-match: "v1"']), { status: 304, text: '', headers: validators })
  t.equal((await spent(gateway)) - before, 3, 'an answer, which the provider may count as any other')
  t.equal(await metric(gateway, /abohawa_provider_request_duration_seconds_count\{outcome="ok"\}/), 4)
})

t.test('of an error that comes zipped the reason is read', async t => {
  const provider = await startScriptedProvider(t, (_request, response) => {
    response.writeHead(429, { 'content-encoding': 'gzip' })
    response.end(gzipSync('{"error":true,"reason":"Hourly API request limit exceeded."}'))
  })
  const gateway = await startGateway(t, { providerUrl: provider.url, clock: manualClock(), env: limits })
  t.equal((await through(gateway, `/v1/forecast?${point}`)).status, 429)
  t.match(await through(gateway, `/v1/forecast?${point}`), {
    body: { error: /ask again from 2026-11-21T07:00:02/ },
  })
})

t.test('an endless response is cut off in time, and few requests may wait', async t => {
  const mebibyte = Buffer.alloc(1024 * 1024)
  let pace: 'flood' | 'trickle' | 'silent' | 'long' = 'flood'
  let open = 0
  const provider = await startScriptedProvider(t, (_request, response) => {
    open += 1
    response.once('close', () => {
      open -= 1
    })
    if (pace === 'silent') return
    if (pace === 'long') response.writeHead(200, { 'content-length': 1e12 })
    const send = (): void => {
      if (response.destroyed) return
      if (pace === 'trickle') {
        response.write('x')
        setTimeout(send, 20)
      } else if (response.write(mebibyte)) setImmediate(send)
      else response.once('drain', send)
    }
    send()
  })
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '5s',
      ABOHAWA_PROVIDER__TIMEOUT: '2s',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
    },
  })
  const ask = () => through(gateway, `/v1/forecast?${point}`)
  for (const slow of ['flood', 'trickle', 'long'] as const) {
    pace = slow
    const started = performance.now()
    const response = await fetch(`${gateway.opsUrl}/provider/v1/forecast?${point}`)
    t.equal(response.status, 200, 'what has come is handed on')
    await t.rejects(response.arrayBuffer(), 'and it is seen to be incomplete')
    t.ok(performance.now() - started < 20_000)
    await until('the connection to the provider is let go', () => open === 0)
  }
  pace = 'silent'
  t.match(await ask(), {
    status: 502,
    body: { error: /^the provider did not answer: no answer from the provider within 2000 ms$/ },
  })

  const answers = await Promise.all(Array.from({ length: 12 }, ask))
  const busy = answers.filter(({ status }) => status === 503)
  t.equal(busy.length, 8)
  t.match(busy[0], {
    body: { error: '4 requests to the provider are under way; ask again when one has ended' },
  })
  t.equal(await metric(gateway, /abohawa_ops_refused_total\{reason="busy"\}/), 8)
  pace = 'flood'
  await until('no connection to the provider is left behind', () => open === 0)

  // A client that disconnects frees its place at once, long before the timeout.
  pace = 'trickle'
  const patient = await startGateway(t, { providerUrl: provider.url })
  const leaving = openSocket(patient.opsUrl)
  leaving.write(requestBytes(`GET /provider/v1/forecast?${point}`, host))
  await until('the provider has a request', () => open > 0)
  leaving.destroy()
  await until('the connection to the provider is let go', () => open === 0)
})

t.test('operators and consumers share the connections to the provider, and take turns', async t => {
  for (const [maxConcurrent, most] of [
    ['1', 1],
    ['3', 3],
  ] as const) {
    let open = 0
    let seen = 0
    const held: (() => void)[] = []
    const provider = await startScriptedProvider(t, (_request, response) => {
      open += 1
      seen = Math.max(seen, open)
      held.push(() => {
        open -= 1
        response.end('{}')
      })
    })
    const gateway = await startGateway(t, {
      providerUrl: provider.url,
      env: {
        ABOHAWA_PROVIDER__MAX_CONCURRENT: maxConcurrent,
        ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '1',
        ABOHAWA_TEST_PROVIDER__RETRIES: '0',
        ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
      },
    })
    const asked = Promise.all([
      ...[1, 2, 3].map(i => gateway.get(`/weather/coords/2${i}.1/89.1`)),
      ...[1, 2, 3, 4].map(() => through(gateway, `/v1/forecast?${point}`)),
    ])
    await until('as many requests are open as may be', () => open >= Math.min(most, 2))
    for (let answered = 0; answered < 7; answered += 1) {
      await until('a request is open', () => held.length > 0)
      held.shift()?.()
    }
    const answers = await asked
    t.strictSame(
      answers.slice(3).map(({ status }) => status),
      [200, 200, 200, 200],
    )
    t.equal(provider.requests.length, 7)
    t.ok(seen <= most, `${seen} at once with provider.maxConcurrent ${maxConcurrent}`)
    if (most > 1) t.ok(seen > 1, 'more than one where more are allowed')
  }
})

t.test('what fails for an operator opens the circuit, and an open circuit holds for operators', async t => {
  let status = 500
  const provider = await startScriptedProvider(t, (_request, response) => {
    response.statusCode = status
    response.end('{}')
  })
  const env = { ABOHAWA_TEST_PROVIDER__RETRIES: '0', ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '1h' }
  const hour = { ...env, ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '1h' }
  const circuit = (gateway: TestGateway) => metric(gateway, /abohawa_provider_circuit\{state="open"\}/)
  const refusal = {
    status: 503,
    body: {
      error: /^the circuit to the provider is not closed, because it has been failing; ask again from 20/,
    },
  }

  const one = await startGateway(t, { providerUrl: provider.url, env: hour })
  for (let n = 0; n < 3; n += 1) t.equal((await through(one, `/v1/forecast?${point}`)).status, 500)
  t.equal(await circuit(one), 1)
  let asked = provider.requests.length
  t.match(await through(one, `/v1/forecast?${point}`), refusal)
  t.match(await through(one, '/data/ecmwf_ifs/static/meta.json'), refusal)
  t.equal((await one.get('/weather/coords/23.1/90.1')).status, 500)
  t.equal(provider.requests.length, asked, 'nobody asks any more')
  t.equal(await metric(one, /abohawa_ops_refused_total\{reason="circuit"\}/), 2)
  t.equal(
    await metric(one, /abohawa_provider_request_duration_seconds_count\{outcome="provider_failing"\}/),
    3,
    'counted among the requests to the provider',
  )

  const other = await startGateway(t, { providerUrl: provider.url, env: hour })
  for (const n of [1, 2, 3]) t.equal((await other.get(`/weather/coords/23.${n}/90.1`)).status, 500)
  t.equal(await circuit(other), 1)
  asked = provider.requests.length
  t.match(await through(other, `/v1/forecast?${point}`), refusal)
  t.equal(provider.requests.length, asked)

  // What may be the fault of the question says nothing of the provider.
  const third = await startGateway(t, { providerUrl: provider.url, env: hour })
  for (const refused of [400, 401, 403, 404, 302]) {
    status = refused
    for (let n = 0; n < 3; n += 1) {
      t.equal((await through(third, `/v1/forecast?${point}`)).status, refused)
      t.equal((await through(third, '/data/nothing/static/meta.json')).status, refused)
    }
  }
  t.equal(await circuit(third), 0)
})

t.test('a request that waits for its turn is told in time, and is not sent any more', async t => {
  const provider = await startScriptedProvider(t, () => {})
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_PROVIDER__MAX_CONCURRENT: '1',
      ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '1',
      ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '1s',
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
    },
  })
  const first = gateway.get('/weather/coords/21.1/89.1')
  await until('the provider is asked for a cell', () => provider.requests.length === 1)
  const second = gateway.get('/weather/coords/22.1/89.1')
  await until('another cell waits', () => metric(gateway, /abohawa_provider_waiting_cells/))
  t.match(await through(gateway, `/v1/forecast?${point}`), {
    status: 502,
    body: { error: 'the provider did not answer: its answer was not whole within 1000 ms of the request' },
  })
  t.strictSame(
    (await Promise.all([first, second])).map(({ status }) => status),
    [500, 500],
  )
  const third = gateway.get('/weather/coords/23.1/89.1')
  await until('the next one has its turn', () => provider.requests.length >= 3)
  t.notOk(provider.requests.some(({ target }) => target.includes(point)))
  await third
})
