// Without it, health, metrics, the line of a client that left, and unpublished places could be wrong.

import { copyFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { setPublished } from '../../tools/catalogue/publication.ts'
import { samplesIn } from '../support/promtool.ts'
import { startProviderHere } from '../support/provider.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { productCounts, usualCatalogue, wholeCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProviderHere(t)

t.test('health, readiness and metrics', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_CATALOGUE__PATH: wholeCatalogue },
  })
  const ops = (path: string) => sendRequest(`${gateway.opsUrl}${path}`)
  t.hasStrict(await ops('/livez'), { status: 200, body: { status: 'live' } })
  t.hasStrict(await ops('/readyz'), {
    status: 200,
    body: { status: 'ready', detail: { store: 'embedded', catalogue: `${productCounts().total} places` } },
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
    ['abohawa_catalogue_places', productCounts().total],
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
  t.hasStrict(left, { endpoint: 'coords', keyId: gateway.keyIds.free })
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
  const before = await total('type=upazila')

  await setPublished(path, '302672', false)
  await until('the place is gone', async () => (await status('locations')) !== 200)
  for (const endpoint of ['locations', 'weather', 'forecast']) t.equal(await status(endpoint), 404, endpoint)
  t.equal(await total('type=upazila'), before - 1)
  t.equal(await total('type=union&upazila_id=302672'), 0, 'absent from filters as well')

  await setPublished(path, '302672', true)
  await gateway.reloadCatalogue()
  t.equal(await status('weather'), 200)
})
