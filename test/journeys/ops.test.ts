// The gateway for operators: health, readiness, metrics, the pass-through to the provider, a reload of the catalogue.

import { copyFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { setPublished } from '../../src/catalogue/publication.ts'
import { systemClock } from '../../src/common/clock.ts'
import { startCommand } from '../support/process.ts'
import { productCounts } from '../support/product-places.ts'
import { samplesIn } from '../support/promtool.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { usualCatalogue, wholeCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProviderHere(t)

t.test('health, readiness and metrics', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_CATALOGUE__PATH: wholeCatalogue },
  })
  const ops = (path: string) => sendRequest(`${gateway.opsUrl}${path}`)
  t.match(await ops('/livez'), { status: 200, body: { status: 'live' } })
  t.match(await ops('/readyz'), {
    status: 200,
    body: { status: 'ready', detail: { store: 'embedded', catalogue: `${productCounts.total} places` } },
  })
  t.equal((await ops('/nothing')).status, 404)

  await gateway.get('/weather/district/3026')
  await gateway.get('/weather/district/3026')
  await gateway.get('/weather/district/9')
  await gateway.get('/nothing', { key: null })
  const { text, headers } = await ops('/metrics')
  t.match(headers['content-type'], /^text\/plain/)
  const series = samplesIn(text)
  for (const [name, value] of [
    ['http_server_request_duration_seconds_count{endpoint="weather",status="200"}', 2],
    ['http_server_request_duration_seconds_count{endpoint="weather",status="404"}', 1],
    ['http_server_request_duration_seconds_count{endpoint="other",status="401"}', 1],
    ['abohawa_cache_reads_total{outcome="miss",source="provider"}', 1],
    ['abohawa_cache_reads_total{outcome="hit",source="memory"}', 1],
    ['abohawa_admissions_total{decision="allowed"}', 3],
    ['abohawa_admissions_total{decision="missing"}', 1],
    ['abohawa_provider_request_duration_seconds_count{outcome="ok"}', 1],
    ['abohawa_provider_points_total', 1],
    ['abohawa_cache_memory_entries', 1],
    ['abohawa_catalogue_places', productCounts.total],
  ] as const)
    t.equal(series.get(name), value, name)
  t.ok(series.get('process_resident_memory_bytes'))
})

/** A request for a cell whose answer waits at the provider. */
const askWhileHeld = async (t: Test, gateway: TestGateway, cell: string, options: object = {}) => {
  const { hostname, port } = new URL(gateway.apiUrl)
  await provider.steer({ hold: true })
  t.teardown(() => provider.steer({ hold: false }))
  const socket = connect({ port: Number(port), host: hostname, ...options })
  t.teardown(() => socket.destroy())
  const head = `GET /api/v1/weather/coords/${cell} HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.keys.free}\r\n\r\n`
  return { socket, head, isHeld: async () => (await provider.state()).inFlight > 0 }
}

t.test('a consumer that disconnects before the response is logged as 499, and the load goes on', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const { socket, head, isHeld } = await askWhileHeld(t, gateway, '21.1/89.1')
  socket.write(head)
  await until('the provider has a request', isHeld)
  socket.resetAndDestroy()
  const left = await until('the line of who left', () => gateway.logged.find(({ status }) => status === 499))
  t.match(left, { endpoint: 'coords', keyId: gateway.keyIds.free })
  await provider.steer({ hold: false })
  t.equal((await gateway.get('/weather/coords/21.1/89.1')).status, 200)
  const counted = 'http_server_request_duration_seconds_count{endpoint="coords",status="499"}'
  t.equal(await gateway.metric(counted), 1)
  t.equal(await gateway.metric('abohawa_provider_points_total'), 1)
})

t.test('a consumer that ends its side has its answer, however late', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const { socket, head, isHeld } = await askWhileHeld(t, gateway, '21.2/89.1', { allowHalfOpen: true })
  const received = text(socket)
  socket.end(head)
  await until('the provider has a request', isHeld)
  await provider.steer({ hold: false })
  t.match(await received, /^HTTP\/1\.1 200 OK\r\n/)
})

t.test('the API listener has none of it, and the ops listener nothing of the API', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const key = gateway.keys.enterprise ?? ''
  for (const path of ['/livez', '/readyz', '/metrics', '/provider/v1/forecast'])
    t.equal((await sendRequest(`${gateway.apiUrl}${path}`, { key })).status, 404, path)
  // Not by sendRequest, which takes it for an answer of the API.
  const { statusCode } = await request(`${gateway.opsUrl}/api/v1/locations?type=division`)
  t.equal(statusCode, 404)
})

t.test('an unpublished place is gone everywhere without a restart', async t => {
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(usualCatalogue, path)
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_CATALOGUE__PATH: path, ABOHAWA_TEST_CATALOGUE__POLL_EVERY: '10ms' },
  })
  const status = async (endpoint: string) => (await gateway.get(`/${endpoint}/upazila/302672`)).status
  const total = async (query: string) => (await gateway.get(`/locations?${query}`)).body.total
  const child = (await gateway.get('/locations?type=union&upazila_id=302672&limit=1')).body.results[0]
  const before = await total('type=upazila')

  await setPublished(path, '302672', false)
  await until('the place is gone', async () => (await status('locations')) !== 200)
  for (const endpoint of ['locations', 'weather', 'forecast']) t.equal(await status(endpoint), 404, endpoint)
  t.equal(await total('type=upazila'), before - 1)
  t.equal(await total('type=union&upazila_id=302672'), 0, 'absent from filters as well')
  const orphan = (await gateway.get(`/locations/union/${child.id}`)).body.location
  t.equal(orphan.parent_en, child.parent_en, 'its children keep their own flag and still name it')

  await setPublished(path, '302672', true)
  await gateway.reloadCatalogue()
  t.equal(await status('weather'), 200)
})

t.test('the catalogue is swapped under load without a dropped request', async t => {
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(wholeCatalogue, path)
  const gateway = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_CATALOGUE__PATH: path } })
  let swapping = true
  const statuses: number[] = []
  const callers = Array.from({ length: 10 }, async () => {
    while (swapping) statuses.push((await gateway.get('/locations/district/3026')).status)
  })
  try {
    for (const published of [false, true]) {
      await setPublished(path, '302672', published)
      await gateway.reloadCatalogue()
      t.equal((await gateway.get('/locations/upazila/302672')).status, published ? 200 : 404)
    }
  } finally {
    swapping = false
  }
  await Promise.all(callers)
  t.ok(statuses.length > 50, `${statuses.length} requests`)
  t.strictSame(new Set(statuses), new Set([200]))
})

t.test('a faulty catalogue never replaces a good one, and readiness reports it', async t => {
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(usualCatalogue, path)
  const gateway = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_CATALOGUE__PATH: path } })
  writeFileSync(path, '{"provenance":')
  await t.rejects(gateway.reloadCatalogue(), { name: 'InputError' })
  t.equal((await gateway.get('/locations/upazila/302672')).status, 200)
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).body, {
    status: 'ready',
    detail: { catalogue: /newer file refused/ },
  })
})

t.test('SIGHUP reads the catalogue again', async t => {
  const folder = t.testdir()
  const path = join(folder, 'locations.json')
  copyFileSync(usualCatalogue, path)
  const env = {
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_STORE__PATH: join(folder, 'store.db'),
    ABOHAWA_CATALOGUE__PATH: path,
    ABOHAWA_TEST_CATALOGUE__POLL_EVERY: '1h',
    ABOHAWA_PROVIDER__BASE_URL: provider.url,
  }
  const gateway = await startCommand(t, ['serve'], ['ops'], env)
  const places = async () => (await sendRequest(`${gateway.urls.ops}/readyz`)).body.detail.catalogue
  const before = await places()
  const total = Number.parseInt(before, 10)
  t.ok(total > 100, before)
  await setPublished(path, '302672', false)
  gateway.child.kill('SIGHUP')
  await until('the catalogue is read again', async () => (await places()) !== before)
  t.equal(await places(), `${total - 1} places`)
  gateway.child.kill('SIGTERM')
  t.equal(await gateway.exited, 0)
})

t.test('without Redis a request is 500, and with it back all is well', { skip: withoutOwnRedis }, async t => {
  const redis = await startRedis()
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock: systemClock,
    env: { ABOHAWA_REDIS__URL: redis.url, ABOHAWA_QUOTA__WHEN_STORE_IS_DOWN: 'refuse' },
  })
  t.equal((await gateway.get('/locations?type=division')).status, 200)
  await redis.stop()
  const answer = await gateway.get('/locations?type=division')
  t.equal(answer.status, 500)
  t.match(answer.body.error, /^the key or its quota could not be checked/)
  t.match(answer.headers['retry-after'], /^\d+$/)
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).body, {
    detail: { store: /^not available: Redis failed: ./ },
  })
  const again = await startRedis(redis.port)
  t.teardown(again.stop)
  // An emptied Redis has no keys, so 401 shows that the gateway is connected again.
  await until(
    'it talks with Redis again',
    async () => (await gateway.get('/locations?type=division')).status === 401,
  )
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).body, { detail: { store: 'redis' } })
  t.match(
    (await sendRequest(`${gateway.opsUrl}/metrics`)).text,
    /abohawa_admissions_total\{decision="unavailable"\} \d/,
  )
  const outage = () => gateway.logged.filter(({ outage }) => outage === 'store')
  await until('the outage is over', () => outage().some(({ msg }) => msg === 'outage is over'))
  const causes = { redis: 1, store_unavailable: Number }
  t.match(outage(), [
    { level: 'error', msg: 'outage begins', code: 'store_unavailable', reason: String },
    { level: 'info', msg: 'outage is over', errors: Number, causes },
  ])
  t.notOk(gateway.logged.some(({ msg }) => msg === 'failed'))
})
