// Sockets that a parent process holds, as systemd does: the listeners take them over in place of hosts and ports, and a
// gateway is replaced by the next without a connection that is refused.

import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { holdSockets } from '../support/held-sockets.ts'
import { runCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t, undefined, null)
const fixture = (name: string) => join(import.meta.dirname, '..', 'fixtures', name)
const path = '/api/v1/weather/district/3026'

const envOf = (t: Test, more: Record<string, string> = {}) => ({
  // Nothing may be listened on here: the sockets that are held go before.
  ABOHAWA_SERVER__PORT: '1',
  ABOHAWA_OPS__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '300ms',
  ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
  ABOHAWA_PROVIDER__BASE_URL: provider.url,
  ...more,
})
const keyIn = async (env: Record<string, string>) => {
  const made = await runCommand(
    ['keys', 'create', '--create-store', '--subscriber', 'A', '--tier', 'enterprise', '--json'],
    env,
  )
  return JSON.parse(made.stdout).key as string
}
const isGone = (pid: number) => () => !existsSync(`/proc/${pid}`) || undefined
const statusAt = async (place: string, path: string) => {
  const { statusCode, body } = await request(`http://${place}${path}`)
  await body.dump()
  return statusCode
}

t.test('each listener takes the socket of its name', async t => {
  const held = await holdSockets(t, ['health=127.0.0.1', 'api=127.0.0.1', 'ops=127.0.0.1'], envOf(t))
  const [status = '', api = '', ops = ''] = held.places
  const { urls } = await held.start()
  t.strictSame(urls, { api: `http://${api}`, ops: `http://${ops}`, health: `http://${status}` })
  t.equal(await statusAt(api, path), 401)
  t.equal(await statusAt(ops, '/status'), 200)
  t.equal(await statusAt(status, '/readyz'), 200)
  t.equal(await statusAt(status, '/status'), 404)
})

t.test('a Unix socket is taken too, and stays when the gateway ends', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-socket-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const socketPath = join(folder, 'api.sock')
  const env = envOf(t, { ABOHAWA_SERVER__TRUSTED_PROXIES: 'unix' })
  const key = await keyIn(env)
  const held = await holdSockets(t, [`abohawa.socket=${socketPath}`], env)
  const { pid, urls } = await held.start()
  t.equal(urls.api, `unix:${socketPath}`)
  const dispatcher = new Agent({ connect: { socketPath } })
  t.teardown(() => dispatcher.close())
  const { statusCode, body } = await request(`http://localhost${path}`, {
    dispatcher,
    headers: { 'x-api-key': key, 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.9' },
  })
  await body.dump()
  t.equal(statusCode, 200)
  const line = await until('it is logged', () => held.logged.find(({ msg }) => msg === 'answered'))
  t.equal(line?.client, '203.0.113.9')
  process.kill(pid, 'SIGTERM')
  await until('the gateway has ended', isGone(pid))
  t.ok(existsSync(socketPath))
})

t.test('what an inherited socket is open to is judged as what is set', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-socket-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const tls = {
    ABOHAWA_SERVER__TLS__CERT: fixture('localhost.crt'),
    ABOHAWA_SERVER__TLS__KEY: fixture('localhost.key'),
  }
  const proxies = { ABOHAWA_SERVER__TRUSTED_PROXIES: '10.0.0.1' }
  for (const [socket, more, sentence] of [
    [
      'api=0.0.0.0',
      {},
      /^abohawa: the API inherits http:\/\/0\.0\.0\.0:\d+, where plain HTTP is not allowed: set/,
    ],
    [
      'ops=0.0.0.0',
      {},
      /^abohawa: the ops listener inherits http:\/\/0\.0\.0\.0:\d+, where a token is required/,
    ],
    [
      `api=${folder}/1`,
      tls,
      /^abohawa: the API inherits unix:\S+, a Unix socket, .* but server\.tls is set$/m,
    ],
    [`api=${folder}/2`, proxies, /does not have unix, so that every request would count as plain HTTP$/m],
    ['other=127.0.0.1', {}, undefined],
  ] as const) {
    const held = await holdSockets(t, [socket], envOf(t, more))
    if (sentence) t.match(await held.fail(), sentence, socket)
    else t.match((await held.start()).urls, { api: /^http/ })
  }
  const twice = await holdSockets(t, ['api=127.0.0.1', 'api=127.0.0.1'], envOf(t))
  t.match(await twice.fail(), /^abohawa: socket 2 of 2 that this process inherits is named "api"; allowed/)
})

t.test('while one gateway is replaced by the next, under load, nothing is refused', async t => {
  const env = envOf(t)
  const key = await keyIn(env)
  const held = await holdSockets(t, ['api=127.0.0.1'], env)
  const [api = ''] = held.places
  const first = await held.start()
  const counts = { answered: 0, connected: 0 }
  const faults: unknown[] = []
  let isOver = false
  const fail = (fault: unknown) => {
    faults.push(fault)
    isOver = true
  }
  const { port } = new URL(`http://${api}`)
  // Kept connections, as a consumer has them, and one new connection after another.
  const kept = new Agent({ connections: 4, connect: { timeout: 30_000 } })
  t.teardown(() => kept.close())
  const send = async () => {
    while (!isOver)
      try {
        const { statusCode, body } = await request(`http://${api}${path}`, {
          dispatcher: kept,
          headers: { 'x-api-key': key },
        })
        await body.dump()
        if (statusCode === 200) counts.answered += 1
        else fail(statusCode)
      } catch (error) {
        fail(error)
      }
  }
  const open = async () => {
    while (!isOver)
      try {
        const socket = connect(Number(port), '127.0.0.1')
        await once(socket, 'connect')
        socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`)
        const [piece] = await once(socket, 'data')
        if (String(piece).startsWith('HTTP/1.1 200 ')) counts.connected += 1
        else fail(String(piece).split('\r\n')[0])
        socket.destroy()
      } catch (error) {
        fail(error)
      }
  }
  const load = [send(), send(), open(), open()]
  const more = async () => {
    const { answered, connected } = counts
    await until(
      'all of them go on',
      () => counts.answered > answered + 50 && counts.connected > connected + 50,
    )
  }
  await more()
  let { pid } = first
  for (let generation = 0; generation < 2; generation++) {
    process.kill(pid, 'SIGTERM')
    await until('it has ended', isGone(pid))
    // Nobody listens now: who comes waits in the queue of the socket.
    pid = (await held.start()).pid
    await more()
  }
  isOver = true
  await Promise.all(load)
  t.strictSame(faults, [])
})
