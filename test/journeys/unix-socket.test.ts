// The API on a Unix socket: who may connect, what is at its path before and after, and how its peer is judged.

import { once } from 'node:events'
import { existsSync, lstatSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { runCommand, runShared, startCommand } from '../support/process.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProviderHere(t)
const list = '/api/v1/locations?type=division'

/** A path for a socket; that of a test's own folder may be too long for one. */
const socketPath = async (t: Test) => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-socket-'))
  t.teardown(() => rm(folder, { recursive: true }))
  return join(folder, 'api.sock')
}
const start = (t: Test, path: string, more: Record<string, string> = {}) =>
  startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_SERVER__SOCKET: path, ...more } })
const sendTo = async (t: Test, socketPath: string, headers: Record<string, string>) => {
  const dispatcher = new Agent({ connect: { socketPath } })
  t.teardown(() => dispatcher.close())
  const { statusCode, body } = await request(`http://localhost${list}`, { dispatcher, headers })
  return { status: statusCode, body: (await body.json()) as Record<string, unknown> }
}

t.test('it answers there with the mode that is set, and leaves nothing behind', async t => {
  const path = await socketPath(t)
  const gateway = await start(t, path, { ABOHAWA_SERVER__SOCKET_MODE: '0666' })
  t.equal(gateway.apiUrl, `unix:${path}`)
  t.equal(lstatSync(path).mode & 0o777, 0o666)
  const headers = { 'x-api-key': gateway.keys.free ?? '' }
  t.match(await sendTo(t, path, headers), { status: 200, body: { total: 8 } })
  t.match(await sendTo(t, path, {}), { status: 401 })
  await gateway.close()
  t.notOk(existsSync(path))
})

t.test('a peer without an address is trusted as unix alone, and the client is behind it', async t => {
  const path = await socketPath(t)
  const gateway = await start(t, path, { ABOHAWA_SERVER__TRUSTED_PROXIES: 'unix' })
  const key = { 'x-api-key': gateway.keys.free ?? '' }
  const client = { 'x-forwarded-for': '1.1.1.1, 203.0.113.9' }
  t.match(await sendTo(t, path, { ...key, ...client, 'x-forwarded-proto': 'https' }), { status: 200 })
  t.match(await sendTo(t, path, { ...key, 'x-forwarded-proto': 'http' }), {
    status: 400,
    body: { error: /HTTPS is required$/ },
  })
  t.match(await sendTo(t, path, key), { status: 400 })
  const lines = gateway.logged.filter(({ msg }) => msg === 'answered')
  t.strictSame(
    lines.map(({ client }) => client),
    ['203.0.113.9', undefined, undefined],
  )
})

t.test('without trusted proxies nothing that a peer says has an effect', async t => {
  const path = await socketPath(t)
  const gateway = await start(t, path)
  const headers = {
    'x-api-key': gateway.keys.free ?? '',
    'x-forwarded-proto': 'http',
    'x-forwarded-for': '203.0.113.9',
  }
  t.match(await sendTo(t, path, headers), { status: 200 })
  t.equal(gateway.logged.find(({ msg }) => msg === 'answered')?.client, undefined)
})

const envOf = (t: Test, path: string) => ({
  ABOHAWA_SERVER__SOCKET: path,
  ABOHAWA_SERVER__DRAIN_FOR: '0s',
  ABOHAWA_OPS__PORT: '0',
  ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
  ABOHAWA_PROVIDER__BASE_URL: provider.url,
})

t.test('a socket that a dead process left is replaced, one that is listened on is not', async t => {
  const path = await socketPath(t)
  const env = envOf(t, path)
  const { child, exited, urls } = await startCommand(t, ['serve'], ['api'], env)
  t.equal(urls.api, `unix:${path}`)
  // A start that fails ends, and needs no process of its own.
  const other = await runShared(['serve'], env)
  t.equal(other.code, 1)
  t.equal(
    other.stderr,
    `abohawa: server.socket is ${path}, which can't be listened on: another process listens there\n`,
  )
  t.match(await sendTo(t, path, {}), { status: 401 }, 'the first still answers')
  child.kill('SIGKILL')
  await exited
  t.ok(lstatSync(path).isSocket(), 'a killed process leaves it')
  const next = await startCommand(t, ['serve'], ['api'], env)
  t.match(await sendTo(t, path, {}), { status: 401 })
  t.equal(lstatSync(path).mode & 0o777, 0o660)
  next.child.kill('SIGTERM')
  t.equal(await next.exited, 0)
  t.notOk(existsSync(path))
})

t.test('a file at the path, and a folder that is not there, stop the start and the check', async t => {
  const path = await socketPath(t)
  const env = envOf(t, path)
  writeFileSync(path, 'precious')
  const at = `server.socket is ${path}`
  const absent = '/nowhere/api.sock'
  for (const [socket, reason] of [
    [path, `${at}, which can't be listened on: there is something there that is no socket\n`],
    [absent, `server.socket is ${absent}, which can't be listened on: `],
  ] as const) {
    const { code, stderr } = await runShared(['serve'], { ...env, ABOHAWA_SERVER__SOCKET: socket })
    t.equal(code, 1)
    t.ok(stderr.startsWith(`abohawa: ${reason}`), stderr)
    const check = await runCommand(['config', 'check'], { ...env, ABOHAWA_SERVER__SOCKET: socket })
    t.equal(check.code, 1)
    t.match(check.stderr, /server\.socket/)
  }
  t.equal(lstatSync(path).size, 'precious'.length)
})

t.test('doctor looks whether the socket is free, held by a gateway, or by another program', async t => {
  const path = await socketPath(t)
  const env = envOf(t, path)
  const socketLine = async () => {
    const { stdout } = await runCommand(['doctor', '--json'], env)
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; detail: string }[] }
    return checks.find(({ name }) => name === 'socket of server')
  }
  t.match(await socketLine(), { status: 'ok', detail: `${path} is free` })
  const { child, exited } = await startCommand(t, ['serve'], ['api'], env)
  t.match(await socketLine(), { status: 'ok', detail: `${path} is held by a running gateway` })
  child.kill('SIGTERM')
  await exited
  const foreign = createServer(socket => socket.destroy()).listen(path)
  t.teardown(() => foreign.close())
  await once(foreign, 'listening')
  t.match(await socketLine(), { status: 'fail', detail: `${path} is held by another program` })
})
