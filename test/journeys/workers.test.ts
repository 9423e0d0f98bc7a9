// A gateway with several workers: they share the port, operators meet one gateway, a worker that ends or hangs is replaced,
// and neither that, nor a restart of all of them, nor the end loses a request that a worker has not begun. What kill -9 does
// to connections is in test/workers/pool.test.ts. A gateway of three processes is slow to start: what does not disturb each
// other shares one, and then comes in the order of the file.

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { type Caller, openCallers } from '../scenarios/callers.ts'
import { createKey, type Env, processEnv } from '../scenarios/set-up.ts'
import { type Running, runCommand, startCommand } from '../support/process.ts'
import { samplesIn } from '../support/promtool.ts'
import { sendRaw } from '../support/raw-http.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const path = '/api/v1/locations?type=division'

const start = async (
  t: Test,
  more: Env = {},
  args: readonly string[] = [],
): Promise<{ running: Running; key: string; ops: string; env: Env }> => {
  const redis = await testRedis(t)
  const env = processEnv('http://127.0.0.1:9', {
    ABOHAWA_REDIS__URL: redis.url,
    ABOHAWA_REDIS__PREFIX: redis.prefix,
    ABOHAWA_SERVER__WORKERS: '2',
    // A busy machine must not look like an outage of Redis.
    ABOHAWA_REDIS__COMMAND_TIMEOUT: '30s',
    ABOHAWA_LOG__LEVEL: 'info',
    ...more,
  })
  const key = await createKey(env)
  const listeners = env.ABOHAWA_HEALTH__PORT === undefined ? ['api', 'ops'] : ['api', 'ops', 'health']
  const running = await startCommand(t, ['serve', ...args], listeners, env)
  return { running, key, ops: running.urls.ops ?? '', env }
}

type Worker = { number: number; pid: number; isReady: boolean; isResponding: boolean }
const workersAt = async (ops: string, headers = {}): Promise<Worker[]> =>
  JSON.parse((await sendRequest(`${ops}/workers`, { headers })).text).workers
// Each look asks every worker, and the processor is for those that start.
const lookEveryMs = 100
const untilReplaced = (ops: string, former: number | undefined) =>
  until(
    'there is another in its place',
    async () => {
      const workers = await workersAt(ops)
      return workers.length === 2 && workers.every(({ isReady, pid }) => isReady && pid !== former)
    },
    60_000,
    lookEveryMs,
  )
const metricsAt = async (ops: string, headers = {}) =>
  samplesIn((await sendRequest(`${ops}/metrics`, { headers })).text)
const socketOf = ({ pid }: Worker): string => {
  const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  return args[args.indexOf('--worker') + 1] ?? ''
}

const isWhole = (line: string): boolean => {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}

/** Sends until `stop`: half of the callers keep their connections, half open one for each request. Returns what went wrong. */
const load = (t: Test, callers: readonly Caller[]) => {
  let isOver = false
  let answered = 0
  const faults: number[] = []
  const sending = Promise.all(
    callers.map(async (caller, i) => {
      while (!isOver) {
        const { status } = await caller.send(path, undefined, i % 2 === 0 ? {} : { connection: 'close' })
        if (status === 200) answered += 1
        else faults.push(status)
        // The processor is for the new workers too.
        await pause(40)
      }
    }),
  )
  const stop = async () => {
    isOver = true
    await sending
    return { answered, faults }
  }
  t.teardown(stop)
  return { stop }
}

t.test('a gateway from its start to its end', async t => {
  const { running, key, ops, env } = await start(t, {
    ABOHAWA_LOG__ACCESS: 'true',
    ABOHAWA_SERVER__DRAIN_FOR: '300ms',
  })

  await t.test('operators meet one gateway, whose workers share the port', async t => {
    const callers = await openCallers(t, running.urls.api ?? '', key, 32)
    const statuses = await Promise.all(callers.map(caller => caller.send(path)))
    t.ok(statuses.every(({ status }) => status === 200))

    const samples = await metricsAt(ops)
    const answered = [1, 2].map(
      worker =>
        samples.get(
          `http_server_request_duration_seconds_count{worker="${worker}",endpoint="locations",status="200"}`,
        ) ?? 0,
    )
    t.equal((answered[0] ?? 0) + (answered[1] ?? 0), 32, 'the metrics of both are there, and told apart')
    t.ok(
      answered.every(count => count > 0),
      `each took connections: ${answered}`,
    )
    t.equal(samples.get('abohawa_workers{state="ready"}'), 2)

    const ready = await sendRequest(`${ops}/readyz`)
    t.match(JSON.parse(ready.text), { status: 'ready', detail: { store: 'redis', workers: '2 of 2 ready' } })
    t.match(JSON.parse((await sendRequest(`${ops}/status`)).text), { version: String })
    await until('each sees the other', async () => {
      const { instances } = JSON.parse((await sendRequest(`${ops}/status`)).text) as { instances: unknown[] }
      return instances.length === 2
    })
    t.match((await sendRequest(`${ops}/`)).text, /<!doctype html>/i, 'the dashboard')
    t.equal((await sendRequest(`${ops}/nothing`)).status, 404)
    t.equal((await sendRequest(`${ops}/workers`, { method: 'DELETE' })).status, 405)
    t.match(JSON.parse((await sendRequest(`${ops}/cache/warm`)).text), {}, 'a path that one worker answers')
    const { stdout, code } = await runCommand(['status', '--gateway', ops], env)
    t.equal(code, 0)
    t.match(stdout, /Instances/)
  })

  await t.test('the socket of a worker is for this user alone', async t => {
    const [first] = await workersAt(ops)
    t.equal(statSync(dirname(socketOf(first as Worker))).mode & 0o777, 0o700)
  })

  await t.test('a worker that is killed is replaced, and the other one goes on', async t => {
    const [first] = await workersAt(ops)
    process.kill(first?.pid ?? 0, 'SIGKILL')
    await untilReplaced(ops, first?.pid)
    t.equal((await metricsAt(ops)).get('abohawa_workers_ended_total'), 1)
    const line = running.lines.find(text => text.includes('a worker ended by itself'))
    t.match(JSON.parse(line ?? '{}'), { level: 'error', worker: 1, reason: 'ended by SIGKILL' })
    const callers = await openCallers(t, running.urls.api ?? '', key, 16)
    for (const { status } of await Promise.all(callers.map(caller => caller.send(path)))) t.equal(status, 200)
  })

  await t.test('a restart of all workers loses no request', async t => {
    const before = await workersAt(ops)
    const callers = await openCallers(t, running.urls.api ?? '', key, 16)
    const sending = load(t, callers)
    const { code, stdout } = await runCommand(['workers', 'restart', '--gateway', ops], env)
    t.equal(code, 0, stdout)
    t.equal((await sendRequest(`${ops}/workers/restart`, { method: 'POST' })).status, 409, 'one at a time')
    await until(
      'the restart has ended',
      () => running.lines.some(line => line.includes('workers restarted')),
      60_000,
      lookEveryMs,
    )
    const after = await workersAt(ops)
    t.equal(after.length, 2)
    for (const { pid, isReady } of after) {
      t.ok(isReady)
      t.notOk(
        before.some(former => former.pid === pid),
        'another process',
      )
    }
    const { answered, faults } = await sending.stop()
    t.strictSame(faults, [], `${answered} requests`)
    t.ok(answered > 100)
  })

  await t.test('the end loses no request that was begun, and leaves no process', async t => {
    const workers = await workersAt(ops)
    const pids = workers.map(({ pid }) => pid)
    const sockets = workers.map(socketOf)
    const callers = await openCallers(t, running.urls.api ?? '', key, 8)
    t.ok((await Promise.all(callers.map(caller => caller.send(path)))).every(({ status }) => status === 200))
    const last = callers.map(caller => caller.send(path))
    // As a service manager does: to every process of the unit.
    for (const pid of [running.child.pid ?? 0, ...pids]) process.kill(pid, 'SIGTERM')
    t.ok((await Promise.all(last)).every(({ status }) => status === 200))
    t.equal(await running.exited, 0)
    for (const pid of pids) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
    t.strictSame(sockets.filter(existsSync), [], 'nor a socket')
  })

  await t.test('the log is whole, and says whose its lines are', async t => {
    t.strictSame(
      running.lines.filter(line => !isWhole(line)),
      [],
      'every line of the log is whole',
    )
    const logged = running.lines.map(line => JSON.parse(line) as { msg: string; worker?: number })
    for (const msg of ['answered', 'stopped'])
      t.ok(
        [1, 2].every(worker => logged.some(line => line.msg === msg && line.worker === worker)),
        `lines of workers say whose they are: ${msg}`,
      )
    // Two that were replaced under load, two at the end, and the first process.
    for (const msg of ['stopping', 'stopped'])
      t.equal(logged.filter(line => line.msg === msg).length, 5, `all of them ended in order: ${msg}`)
  })
})

t.test('workers on a file that is not in effect, over TLS', async t => {
  const redis = await testRedis(t)
  const file = join(t.testdir(), 'gateway.yaml')
  const yaml = (prefix: string) =>
    `redis: { url: "${redis.url}", prefix: "${prefix}" }\nquota: { tiers: {} }\nserver: { workers: 2 }\n`
  writeFileSync(file, yaml(redis.prefix))
  const fixture = (name: string) => join(import.meta.dirname, '..', 'fixtures', name)
  const env = processEnv('http://127.0.0.1:9', {
    ABOHAWA_CONFIG_FILE: file,
    ABOHAWA_LOG__LEVEL: 'info',
    ABOHAWA_SERVER__TLS__CERT: fixture('localhost.crt'),
    ABOHAWA_SERVER__TLS__KEY: fixture('localhost.key'),
  })
  const key = await createKey(env)
  const running = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const ops = running.urls.ops ?? ''
  /** Statuses of requests at once, each on a connection of its own. */
  const statuses = async (times: number): Promise<number[]> => {
    const client = new Agent({ connect: { rejectUnauthorized: false }, pipelining: 0 })
    try {
      return await Promise.all(
        Array.from({ length: times }, async () => {
          const { statusCode, body } = await request(`${running.urls.api}${path}`, {
            dispatcher: client,
            headers: { 'x-api-key': key },
          })
          await body.dump()
          return statusCode
        }),
      )
    } finally {
      await client.destroy()
    }
  }

  await t.test('a replacement runs with what the others do, whatever the file says by now', async t => {
    t.strictSame(await statuses(1), [200], 'before any is replaced')
    // Waits for a restart, is refused as empty, and is no YAML.
    for (const text of [yaml('another'), '# nothing\n', 'server: [']) {
      writeFileSync(file, text)
      const [first] = await workersAt(ops)
      process.kill(first?.pid ?? 0, 'SIGKILL')
      await untilReplaced(ops, first?.pid)
      t.equal((await sendRequest(`${ops}/readyz`)).body.detail.store, 'redis', text)
      t.strictSame(await statuses(8), Array(8).fill(200), text)
    }
    writeFileSync(
      file,
      yaml('x').replace(redis.url, 'redis://127.0.0.1:9').replace('workers: 2', 'workers: 3'),
    )
    t.equal((await sendRequest(`${ops}/workers/restart`, { method: 'POST' })).status, 202)
    await until('none of them is replaced', () =>
      running.lines.some(line => /ended before it was ready.*"workers not restarted/.test(line)),
    )
    t.equal(
      (await sendRequest(`${ops}/readyz`)).body.detail.workers,
      '2 of 2 ready',
      'a third one is not in effect',
    )
    writeFileSync(file, '')
    t.equal((await sendRequest(`${ops}/workers/restart`, { method: 'POST' })).status, 202)
    await until('the restart is refused', () =>
      running.lines.some(line => /sets nothing any more.*"workers not restarted/.test(line)),
    )
    t.equal((await workersAt(ops)).length, 2)
  })

  await t.test('signals end none that has just been started', async t => {
    writeFileSync(file, yaml(redis.prefix))
    const before = await workersAt(ops)
    const endedBefore = (await metricsAt(ops)).get('abohawa_workers_ended_total')
    const from = running.lines.length
    await sendRequest(`${ops}/workers/restart`, { method: 'POST' })
    running.child.kill('SIGUSR2')
    running.child.kill('SIGHUP')
    const ended = () => running.lines.slice(from).find(line => /workers (not )?restarted/.test(line))
    await until('the restart has ended', ended, 60_000, lookEveryMs)
    t.match(ended(), /"msg":"workers restarted"/)
    const after = await workersAt(ops)
    t.ok(after.every(({ pid }) => !before.some(former => former.pid === pid)))
    t.equal((await metricsAt(ops)).get('abohawa_workers_ended_total'), endedBefore)
    t.strictSame(await statuses(8), Array(8).fill(200))
  })

  await t.test('a stop does not wait for a worker that is being started', async t => {
    const pids = (await workersAt(ops)).map(({ pid }) => pid)
    t.equal((await sendRequest(`${ops}/workers/restart`, { method: 'POST' })).status, 202)
    running.child.kill('SIGTERM')
    t.equal(await running.exited, 0)
    for (const pid of pids) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })
})

t.test('who is refused, and workers on a file that changes', async t => {
  const file = join(t.testdir(), 'gateway.yaml')
  const set = ({ host = '127.0.0.1', workerTimeout = '10m' }) =>
    writeFileSync(
      file,
      `ops: { allowedHosts: [${host}] }\n` + `server: { workers: 2, workerTimeout: ${workerTimeout} }\n`,
    )
  set({ host: 'a.example' })
  const token = '0123456789-abcdefghijklmnopqrstuv'
  const authorized = { authorization: `Bearer ${token}` }
  const { running, ops } = await start(
    t,
    { ABOHAWA_OPS__TOKEN: token, ABOHAWA_HEALTH__PORT: '0', ABOHAWA_TEST_CONFIG__POLL_EVERY: '50ms' },
    ['--config', file],
  )
  const status = running.urls.health ?? ''

  await t.test(
    'what the first process refuses by itself is counted beside what the workers refuse',
    async t => {
      const refusals = async () => {
        const { text } = await sendRequest(`${status}/metrics`)
        t.equal(text.match(/^# HELP abohawa_ops_refused_total /gm)?.length, 1, 'one help for all')
        const samples = [...samplesIn(text)].filter(([name]) => name.startsWith('abohawa_ops_refused_total{'))
        return { count: samples.length, above0: Object.fromEntries(samples.filter(([, count]) => count > 0)) }
      }
      const before = await refusals()
      t.strictSame(before.above0, {})
      t.equal(
        before.count % 3,
        0,
        'each reason is there from the start: of the first process and of both workers',
      )

      t.equal((await sendRequest(`${ops}/workers`)).status, 401)
      t.equal((await sendRequest(`${ops}/keys`)).status, 401, 'by a worker')
      t.equal((await sendRequest(`${ops}/readyz`, { headers: { host: 'evil.example' } })).status, 403)
      t.equal((await sendRequest(`${status}/readyz`, { headers: { host: 'evil.example' } })).status, 403)
      t.equal((await sendRequest(`${status}/keys`)).status, 404)
      t.equal((await sendRaw(ops, 'no HTTP\r\n\r\n')).status, 400)
      const of = (reason: string, labels = '') => `abohawa_ops_refused_total{${labels}reason="${reason}"}`
      t.strictSame((await refusals()).above0, {
        [of('token_missing')]: 1,
        [of('token_missing', 'worker="1",')]: 1,
        [of('host')]: 2,
        [of('path')]: 1,
        [of('unparsable')]: 1,
      })
    },
  )

  await t.test('the token holds for the workers too, and a wrong one is logged with its address', async t => {
    for (const each of ['/workers', '/status', '/cells']) {
      t.equal((await sendRequest(`${ops}${each}`)).status, 401, each)
      t.equal((await sendRequest(`${ops}${each}`, { headers: authorized })).status, 200, each)
    }
    t.equal((await sendRequest(`${ops}/status`, { headers: { authorization: 'Bearer wrong' } })).status, 401)
    await until('it is logged', () => running.lines.some(line => line.includes('wrong token')))
    const line = running.lines.find(each => each.includes('wrong token'))
    t.match(JSON.parse(line ?? '{}'), { from: /127\.0\.0\.1/ })
  })

  await t.test('a worker that hangs is left out, and ended after the time that is set now', async t => {
    const before = await workersAt(ops, authorized)
    const [hung, other] = before.map(({ pid }) => pid)
    process.kill(hung ?? 0, 'SIGSTOP')
    t.teardown(() => {
      try {
        process.kill(hung ?? 0, 'SIGKILL')
      } catch {}
    })
    const ready = await sendRequest(`${ops}/readyz`, { headers: authorized })
    t.equal(ready.status, 200)
    t.equal(ready.body.detail.workers, '1 of 2 ready', 'probes do not wait for it')
    t.match((await sendRequest(`${ops}/metrics`, { headers: authorized })).text, /worker="2"/)
    await until(
      'it is left out',
      async () => (await workersAt(ops, authorized))[0]?.isResponding === false,
      20_000,
      500,
    )
    t.equal(
      (await sendRequest(`${ops}/status`, { headers: authorized })).status,
      200,
      'the other one answers operators',
    )
    t.equal((await metricsAt(ops, authorized)).get('abohawa_workers{state="unresponsive"}'), 1)

    // A busy machine delays heartbeats of the other one, too.
    set({ workerTimeout: '5s' })
    running.child.kill('SIGHUP')
    await until(
      'there is another in its place',
      async () => {
        const pids = (await workersAt(ops, authorized)).flatMap(({ pid, isReady }) => (isReady ? [pid] : []))
        return pids.length === 2 && pids.includes(other ?? 0) && !pids.includes(hung ?? 0)
      },
      60_000,
      500,
    )
    t.equal((await metricsAt(ops, authorized)).get('abohawa_workers_timed_out_total'), 1)
    const line = running.lines.find(text => text.includes('a worker ended by itself'))
    t.match(JSON.parse(line ?? '{}'), { worker: 1, reason: /^it did not respond for \d+ ms$/ })

    const [last] = await workersAt(ops, authorized)
    process.kill(last?.pid ?? 0, 'SIGSTOP')
    running.child.kill('SIGTERM')
    t.equal(await running.exited, 0, 'one that hangs holds up no stop')
    t.throws(() => process.kill(last?.pid ?? 0, 0), { code: 'ESRCH' })
  })
})

t.test('what is wrong at the start is said once, and ends all', async t => {
  const env = processEnv('http://127.0.0.1:9', {
    ABOHAWA_REDIS__URL: 'redis://127.0.0.1:9',
    ABOHAWA_SERVER__WORKERS: '2',
  })
  const { code, stderr } = await runCommand(['serve'], env)
  t.equal(code, 1)
  t.equal(stderr.match(/redis\.url names 127\.0\.0\.1:9, which can't be used/g)?.length, 1, stderr)
})
