// Without it a flood that reads no responses could fill the gateway's memory or keep consumers waiting.

import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { createKey, metric, processEnv } from '../scenarios/set-up.ts'
import { residentMiB } from '../support/proc.ts'
import { startLimited, startProgram } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'

const MiB = 2 ** 20
const script = new URL('./flood.ts', import.meta.url).pathname

const provider = await startProviderHere(t, undefined, null)

const env = processEnv(provider.url, { ABOHAWA_STORE__PATH: `${t.testdir()}/store.db` })
const key = await createKey(env)

const startFlooded = async (t: Teardown) => {
  const gateway = await startLimited(t, 1_500 * MiB, env)
  const dispatcher = new Agent({ connections: 1, pipelining: 1 })
  t.teardown(() => dispatcher.destroy())
  const url = gateway.urls.api ?? ''
  const get = async (from = dispatcher) => {
    const answer = await request(`${url}/api/v1/weather/district/3026`, {
      dispatcher: from,
      headers: { 'x-api-key': key },
    })
    await answer.body.dump()
    return answer.statusCode
  }
  const getAnew = async () => {
    const own = new Agent({ connections: 1 })
    const status = await get(own)
    await own.close()
    return status
  }
  // Over kept and over new connections, so that later growth is due to the flood.
  for (let i = 0; i < 200; i++) await (i % 10 === 0 ? getAnew() : get())
  const read = (name: string) => metric(gateway.urls.ops ?? '', name)
  return { url, get, getAnew, metric: read, residentMiB: () => residentMiB(gateway.child.pid) }
}

const floodOf = async (
  t: Test,
  url: string,
  sockets: number,
  requests: number,
  one: string,
  addresses = 1,
) => {
  const numbers = { sockets: String(sockets), requests: String(requests), addresses: String(addresses) }
  const options = { url, ...numbers, request: one }
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  const { lines, child } = await startProgram(t, [process.execPath, script, ...args], [])
  return {
    state: () =>
      JSON.parse(lines.at(-1) ?? '{"connected":0,"closed":0}') as { connected: number; closed: number },
    stop: () => child.kill('SIGKILL'),
  }
}

t.test('a thousand connections of strangers cost little from any number of addresses', async t => {
  const { url, get, getAnew, metric, residentMiB } = await startFlooded(t)
  const before = residentMiB()
  let most = 0
  const flood = await floodOf(t, url, 1_000, 4_000, 'GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n', 16)
  await until('the flood has connected', () => flood.state().connected === 1_000)
  for (let i = 0; i < 100; i++) {
    if (i % 10 === 0) {
      t.equal(await getAnew(), 200, 'a consumer who is new is let in as well')
      most = Math.max(most, residentMiB())
    }
    if ((await get()) !== 200) t.fail(`consumer ${i} was not served`)
  }
  // A connection gets at most a hundred responses, and is then closed.
  await until('all are closed', async () => (await metric('abohawa_connections_unauthenticated')) === 0)
  most = Math.max(most, residentMiB())
  t.ok(most - before <= 80, `${Math.round(most - before)} MiB for 1,000 connections`)
  t.ok((await metric('abohawa_connections_closed_total{reason="pipeline"}')) > 0)
  flood.stop()
})

t.test('lists that wait on connections which nobody reads cost a list each', async t => {
  const { url, get, metric, residentMiB } = await startFlooded(t)
  const headers = { 'x-api-key': key }
  const found = await request(`${url}/api/v1/locations?type=union&limit=100`, { headers })
  const { results } = (await found.body.json()) as { results: { id: string }[] }
  const list = `/api/v1/weather?places=${results.map(({ id }) => `union/${id}`)}`
  const answer = await request(url + list, { headers })
  const bytes = (await answer.body.arrayBuffer()).byteLength
  t.ok(bytes > 100_000, `${bytes} bytes`)
  const before = residentMiB()
  const one = `GET ${list} HTTP/1.1\\r\\nhost: x\\r\\nx-api-key: ${key}\\r\\n\\r\\n`
  const flood = await floodOf(t, url, 40, 40, one)
  await until('the flood has connected', () => flood.state().connected === 40)
  const count = () =>
    metric('http_server_request_duration_seconds_count{endpoint="weather_places",status="200"}')
  // Some are taken by the kernel's buffers.
  await until('each has a list', async () => (await count()) > 40)
  for (let i = 0; i < 50; i++) t.equal(await get(), 200, 'a consumer is served meanwhile')
  const growth = residentMiB() - before
  t.ok(growth <= 100, `${Math.round(growth)} MiB for lists of ${bytes} bytes`)
  flood.stop()
})

t.test('a hundred thousand requests on one connection wait in the kernel, not here', async t => {
  const { url, get, metric, residentMiB } = await startFlooded(t)
  await provider.steer({ hold: true })
  const before = residentMiB()
  const one = `GET /api/v1/weather/coords/25.5/89.5 HTTP/1.1\\r\\nhost: x\\r\\nx-api-key: ${key}\\r\\n\\r\\n`
  const flood = await floodOf(t, url, 1, 100_000, one)
  await until('the provider has a request', async () => (await provider.state()).inFlight > 0)
  for (let i = 0; i < 50; i++) t.equal(await get(), 200, 'a consumer is served')
  const growth = residentMiB() - before
  t.ok(growth <= 50, `${Math.round(growth)} MiB for 100,000 requests`)
  t.equal(await metric('abohawa_connections'), 2)
  flood.stop()
  await provider.steer({ hold: false })
})
