// Floods on the API's port: clients that send many requests and read no responses. The gateway's memory stays bounded, it
// closes and counts their connections, and good consumers are served meanwhile.

import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { type Running, runCommand, startLimited, startScript } from '../support/process.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { openRaw } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const MiB = 2 ** 20
const script = new URL('../support/flood.ts', import.meta.url).pathname

const provider = await startProviderHere(t, undefined, null)

const startFlooded = async (
  t: Pick<Test, 'testdir' | 'teardown'>,
  more: Record<string, string> = {},
  { isWarm = false } = {},
) => {
  const env = {
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_STORE__PATH: `${t.testdir()}/store.db`,
    ABOHAWA_PROVIDER__BASE_URL: provider.url,
    ABOHAWA_CATALOGUE__PATH: usualCatalogue,
    ...more,
  }
  const made = await runCommand(
    ['keys', 'create', '--create-store', '--subscriber', 'A', '--tier', 'enterprise', '--json'],
    env,
  )
  const key = JSON.parse(made.stdout).key as string
  const gateway = await startLimited(t, 1_500 * MiB, ['serve'], ['api', 'ops'], env)
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
  if (isWarm) for (let i = 0; i < 300; i++) await (i % 10 === 0 ? getAnew() : get())
  const metric = async (name: string): Promise<number> => {
    const { body } = await request(`${gateway.urls.ops}/metrics`)
    const line = (await body.text()).split('\n').find(each => each.startsWith(`${name} `))
    return Number(line?.split(' ')[1] ?? 0)
  }
  return { gateway, url, key, get, getAnew, metric, residentMiB: () => residentMiB(gateway) }
}

const residentMiB = ({ child }: Running): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024

const floodOf = async (t: Test, url: string, sockets: number, requests: number, one: string) => {
  const options = { url, sockets: String(sockets), requests: String(requests), request: one }
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  const { lines, child } = await startScript(t, script, args, [])
  return {
    state: () =>
      JSON.parse(lines.at(-1) ?? '{"connected":0,"closed":0}') as { connected: number; closed: number },
    stop: () => child.kill('SIGKILL'),
  }
}

t.test('two thousand connections that read no answer cost little, and consumers are served', async t => {
  const { url, get, getAnew, metric, residentMiB } = await startFlooded(t, {}, { isWarm: true })
  const before = residentMiB()
  let most = 0
  const flood = await floodOf(t, url, 2_000, 24_000, 'GET / HTTP/1.1\\r\\n\\r\\n')
  await until('the flood has connected', () => flood.state().connected === 2_000, 45_000)
  for (let i = 0; i < 300; i++) {
    if (i % 10 === 0) {
      t.equal(await getAnew(), 200, 'a consumer who is new is let in as well')
      most = Math.max(most, residentMiB())
    }
    if ((await get()) !== 200) t.fail(`consumer ${i} was not served`)
  }
  // A kept connection gets at most a thousand responses, and is then closed.
  await until(
    'the others are closed',
    async () => (await metric('abohawa_connections_unauthenticated')) === 0,
    45_000,
  )
  most = Math.max(most, residentMiB())
  t.ok(most - before <= 100, `${Math.round(most - before)} MiB for 2,000 connections`)
  t.ok((await metric('abohawa_connections_closed_total{reason="unauthenticated"}')) > 0)
  flood.stop()
})

t.test('a hundred thousand requests on one connection wait in the kernel, not here', async t => {
  const { url, key, metric, residentMiB } = await startFlooded(t, {}, { isWarm: true })
  await provider.steer({ hold: true })
  const before = residentMiB()
  const one = `GET /api/v1/weather/coords/25.5/89.5 HTTP/1.1\\r\\nhost: x\\r\\nx-api-key: ${key}\\r\\n\\r\\n`
  const flood = await floodOf(t, url, 1, 100_000, one)
  await until('the provider has a request', async () => (await provider.state()).inFlight > 0, 45_000)
  await pause(1_000)
  const growth = residentMiB() - before
  t.ok(growth <= 50, `${Math.round(growth)} MiB for 100,000 requests`)
  t.equal(await metric('abohawa_connections'), 2)
  flood.stop()
  await provider.steer({ hold: false })
})

// One gateway for both limits: neither test comes near the limit of the other.
const limited = startFlooded(t, {
  ABOHAWA_SERVER__MAX_QUEUED_REQUESTS: '20',
  ABOHAWA_SERVER__MAX_CONNECTIONS: '10',
})

t.test('requests that wait behind others are bounded over all connections', async t => {
  const { url, key, metric } = await limited
  await provider.steer({ hold: true })
  const one = `GET /api/v1/weather/coords/25.5/89.5 HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`
  const [shallow, deep, last] = [await openRaw(t, url), await openRaw(t, url), await openRaw(t, url)]
  const queued = (count: number) => async () => (await metric('abohawa_requests_queued')) === count
  shallow.send(one.repeat(5))
  await until('the first is read', queued(4), 45_000)
  deep.send(one.repeat(15))
  await until('the deep one is read', queued(18), 45_000)
  last.send(one.repeat(10))
  await until('the deepest is closed', () => deep.socket.destroyed, 45_000)
  t.equal(await metric('abohawa_connections_closed_total{reason="pipelining"}'), 1)
  await provider.steer({ hold: false })
  for (let i = 0; i < 5; i++) t.equal((await shallow.answer()).status, 200)
  for (let i = 0; i < 10; i++) t.equal((await last.answer()).status, 200)
})

t.test(
  'a client that takes nothing of its answers is closed after a while, one that is slow is not',
  async t => {
    const { url, key, metric } = await startFlooded(t, { ABOHAWA_SERVER__WRITE_TIMEOUT: '1s' })
    const one = `GET /api/v1/weather/district/3026 HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`
    const { hostname, port } = new URL(url)
    const dead = connect({ port: Number(port), host: hostname }).pause()
    dead.on('error', () => {})
    dead.write(one.repeat(2_000))
    const slow = await openRaw(t, url)
    slow.send(one.repeat(2_000))
    const reading = (async () => {
      for (let i = 0; i < 2_000; i++) {
        if (i % 200 === 0) await pause(100)
        const { status } = await slow.answer()
        if (status !== 200) t.fail(`answer ${i} is ${status}`)
      }
    })()
    await until(
      'the dead one is closed',
      async () => (await metric('abohawa_connections_closed_total{reason="write_timeout"}')) === 1,
      45_000,
    )
    await reading
    dead.destroy()
  },
)

t.test(
  'connections in all are bounded: those that rest make room, and where none rests the new one goes',
  async t => {
    const { url, key, metric } = await limited
    const one = `GET /api/v1/locations/district/3026 HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`
    const connections = []
    for (let i = 0; i < 15; i++) {
      const raw = await openRaw(t, url)
      raw.send(one)
      t.equal((await raw.answer()).status, 200, `connection ${i}`)
      connections.push(raw)
    }
    t.ok((await metric('abohawa_connections')) <= 10)
    t.ok((await metric('abohawa_connections_closed_total{reason="connections"}')) >= 5)
    const newest = connections.at(-1)
    newest?.send(one)
    t.equal((await newest?.answer())?.status, 200, 'the one used last was kept')
  },
)
