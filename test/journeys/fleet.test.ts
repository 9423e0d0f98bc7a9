// Without it processes on one store could count apart, lose counts at a kill, or drop requests at a stop.

import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { type Issued, issueKeys, quietZone, usedToday } from '../scenarios/keys.ts'
import { freePort } from '../support/listening.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

// The gateways and the provider are processes on the machine's clock.
const provider = await startProvider(t, undefined, null)
const weather = '/api/v1/weather/district/3026'
const list = '/api/v1/locations?type=division'

const createKey = async (env: Record<string, string>, tier = 'starter') =>
  (await issueKeys(env, [tier]))[0] as Issued

const baseEnv = {
  ABOHAWA_QUOTA__TIME_ZONE: quietZone(),
  ABOHAWA_SERVER__PORT: '0',
  ABOHAWA_OPS__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '300ms',
  ABOHAWA_PROVIDER__BASE_URL: provider.url,
  ABOHAWA_LOG__ACCESS: 'false',
}

t.test('gateways share a port where configured, and count as one', async t => {
  const redis = await testRedis(t)
  const shared = {
    ...baseEnv,
    ...redis.env,
    ABOHAWA_SERVER__REUSE_PORT: 'true',
  }
  const first = await startCommand(t, ['serve'], ['api', 'ops'], shared)
  const port = new URL(first.urls.api ?? '').port
  const env = { ...shared, ABOHAWA_SERVER__PORT: port }
  const second = await startCommand(t, ['serve'], ['api', 'ops'], env)
  t.equal(second.urls.api, first.urls.api)
  const { key } = await createKey(shared, 'free')
  const served = async ({ urls }: typeof first) =>
    Number(
      /_count\{endpoint="locations",status="200"\} (\d+)/.exec(
        (await sendRequest(`${urls.ops}/metrics`)).text,
      )?.[1] ?? 0,
    )
  // The kernel assigns each connection to one of the two by its source port.
  const left: number[] = []
  for (let i = 0; i < 60; i++) {
    const dispatcher = new Agent({ pipelining: 0 })
    const { headers, body } = await request(`${first.urls.api}${list}`, {
      dispatcher,
      headers: { 'x-api-key': key },
    })
    await body.text()
    await dispatcher.close()
    left.push(Number(headers['x-ratelimit-remaining']))
  }
  t.strictSame(
    left,
    Array.from({ length: 60 }, (_, i) => 99 - i),
  )
  const counts = [await served(first), await served(second)]
  t.equal((counts[0] ?? 0) + (counts[1] ?? 0), 60)
  t.ok(Math.min(...counts) > 5, `both serve: ${counts.join(' and ')}`)
})

t.test('a cell that one gateway loaded another on the same Redis serves from the shared tier', async t => {
  const redis = await testRedis(t)
  const env = { ...baseEnv, ...redis.env }
  const [first, second] = await Promise.all([1, 2].map(() => startCommand(t, ['serve'], ['api'], env)))
  const { key } = await createKey(env)
  const { calls } = await provider.state()
  const a = await sendRequest(`${first?.urls.api}${weather}`, { key })
  const b = await sendRequest(`${second?.urls.api}${weather}`, { key })
  t.match(a.headers['cache-status'], /fwd=miss/)
  t.match(b.headers['cache-status'], /hit; ttl=\d+; detail=redis/)
  t.strictSame(b.body.daily, a.body.daily)
  t.equal((await provider.state()).calls - calls, 1)
})

t.test('kill -9 and restart on the embedded store', async t => {
  const env = {
    ...baseEnv,
    ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
  }
  const [{ key, id }, { key: reader }] = [await createKey(env), await createKey(env)]
  const gateway = await startCommand(t, ['serve'], ['api'], env)
  let answered = 0
  const callers = Array.from({ length: 20 }, async () => {
    for (;;) {
      const answer = await sendRequest(`${gateway.urls.api}${list}`, { key }).catch(() => undefined)
      if (answer?.status !== 200) return
      answered += 1
      if (answered !== 300) continue
      // The last that it does.
      await sendRequest(`${gateway.urls.api}${weather}`, { key: reader })
      gateway.child.kill('SIGKILL')
    }
  })
  await Promise.all(callers)
  await gateway.exited
  const { calls } = await provider.state()
  const [counted = 0] = await usedToday(env, [id])
  const again = await startCommand(t, ['serve'], ['api'], env)

  await t.test('usage survives: counted is at least answered', async t => {
    t.ok(answered >= 300)
    t.ok(counted >= answered && counted <= answered + 20, `${answered} answered, ${counted} counted`)
    const { headers } = await sendRequest(`${again.urls.api}${list}`, { key })
    t.equal(headers['x-ratelimit-remaining'], String(1_000 - counted - 1))
  })

  await t.test('the weather of the earlier life is found', async t => {
    const { headers } = await sendRequest(`${again.urls.api}${weather}`, { key: reader })
    t.match(headers['cache-status'], /detail=embedded/)
    t.equal((await provider.state()).calls, calls)
  })

  await t.test(
    'at its stop a connection that was accepted is answered, though it asks after the port closed',
    async t => {
      const { hostname, port } = new URL(again.urls.api ?? '')
      const sockets = Array.from({ length: 20 }, () => connect(Number(port), hostname))
      t.teardown(() => sockets.forEach(socket => void socket.destroy()))
      await Promise.all(sockets.map(socket => once(socket, 'connect')))
      // Connections are accepted in order, so once a later one has its response all of these are accepted.
      const later = new Agent()
      const { statusCode, body } = await request(`${again.urls.api}${list}`, {
        dispatcher: later,
        headers: { 'x-api-key': reader },
      })
      await body.text()
      t.equal(statusCode, 200)
      await later.close()
      again.child.kill('SIGTERM')
      const isOpen = () =>
        sendRequest(`${again.urls.api}${list}`, { key: reader }).then(
          () => true,
          () => false,
        )
      await until('the port is closed', async () => !(await isOpen()))
      const answers = await Promise.all(
        sockets.map(async socket => {
          socket.write(`GET ${list} HTTP/1.1\r\nhost: x\r\nx-api-key: ${reader}\r\n\r\n`)
          const chunks: Buffer[] = []
          for await (const chunk of socket) chunks.push(chunk)
          return Buffer.concat(chunks).toString().split('\r\n')[0]
        }),
      )
      t.strictSame(new Set(answers), new Set(['HTTP/1.1 200 OK']))
      t.equal(await again.exited, 0)
    },
  )
})

t.test(
  'SIGTERM under load: readiness goes red, what was accepted is answered, the process ends by itself',
  async t => {
    const env = {
      ...baseEnv,
      ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
      ABOHAWA_LOG__ACCESS: 'true',
      // All that follows the signal is seen within it, also on a busy machine.
      ABOHAWA_SERVER__DRAIN_FOR: '3s',
      ABOHAWA_TEST_CACHE__WAIT_FOR: '3m',
      ABOHAWA_PROVIDER__TIMEOUT: '100s',
      ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '100s',
    }
    const { key } = await createKey(env, 'enterprise')
    const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
    const { api = '', ops = '' } = gateway.urls
    t.equal((await sendRequest(`${ops}/readyz`)).status, 200)
    // A request in flight while the listener closes: a cold cell that the provider delays.
    await provider.steer({ hold: true })
    const slow = sendRequest(`${api}/api/v1/weather/coords/26/89`, { key })
    await until('the provider has a request', async () => (await provider.state()).inFlight > 0)

    // Connections are kept alive, as those of a busy consumer are; `connection: close` ends them.
    const dispatcher = new Agent({ connections: 20, keepAliveTimeout: 60_000 })
    t.teardown(() => dispatcher.close())
    const outcomes: string[] = []
    let sent = 0
    const callers = Array.from({ length: 20 }, async () => {
      for (;;) {
        const headers = { 'x-api-key': key, 'x-request-id': `load-${++sent}` }
        const outcome = await request(`${api}${list}`, { dispatcher, headers }).then(
          async ({ statusCode, headers, body }) => {
            await body.text()
            return { status: String(statusCode), last: headers.connection === 'close' }
          },
          (error: NodeJS.ErrnoException) => ({ status: String(error.code), last: true }),
        )
        outcomes.push(outcome.status)
        if (outcome.last) return
        if (outcomes.length === 400) gateway.child.kill('SIGTERM')
      }
    })
    await until('it is not ready any more', async () => (await sendRequest(`${ops}/readyz`)).status === 503)
    await Promise.all(callers)
    // The provider responds only after the listener is closed: the request outlives the drain.
    const isOpen = () =>
      sendRequest(`${api}${list}`, { key }).then(
        () => true,
        () => false,
      )
    await until('the port is closed', async () => !(await isOpen()))
    await provider.steer({ hold: false })
    t.equal((await slow).status, 200, 'the request in flight was finished')
    t.strictSame(new Set(outcomes), new Set(['200']), `${outcomes.length} requests`)
    t.equal(await gateway.exited, 0)
    await until('its last line is there', () => gateway.lines.join('\n').includes('"msg":"stopped"'))
    const logged = gateway.lines.flatMap(line => /"requestId":"load-(\d+)"/.exec(line)?.[1] ?? [])
    t.equal(new Set(logged).size, outcomes.length, 'every answer has its line in the log')
    t.equal(logged.length, outcomes.length)
  },
)

t.test(
  'the addresses are logged even when nothing else is; a port that is taken stops the start; a silent connection no stop',
  async t => {
    const port = String(await freePort())
    const folder = t.testdir()
    const env = { ...baseEnv, ABOHAWA_STORE__PATH: join(folder, 'a.db'), ABOHAWA_SERVER__PORT: port }
    const { urls, child, exited } = await startCommand(t, ['serve'], ['api', 'ops'], {
      ...env,
      ABOHAWA_LOG__LEVEL: 'silent',
      ABOHAWA_TEST_SERVER__REQUEST_TIMEOUT: '300ms',
      ABOHAWA_SERVER__DRAIN_FOR: '0s',
    })
    t.equal((await sendRequest(`${urls.ops}/livez`)).status, 200)
    const { code, stderr } = await runCommand(['serve'], {
      ...env,
      ABOHAWA_STORE__PATH: join(folder, 'b.db'),
    })
    t.equal(code, 1)
    t.match(
      stderr,
      new RegExp(`^abohawa: can't listen on 127.0.0.1:${port} .server.host, server.port.: .*\\n$`),
      'in one sentence',
    )
    const silent = connect(Number(port), '127.0.0.1')
    t.teardown(() => silent.destroy())
    await once(silent, 'connect')
    child.kill('SIGTERM')
    t.equal(await exited, 0, 'a connection that never says anything does not keep a stopping process')
  },
)
