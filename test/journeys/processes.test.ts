// Without it `serve --processes` could lose requests, leave processes behind, or restart into a broken configuration.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { endInOrder, replaceInOrder } from '../../src/cli/serve/supervisor.ts'
import { sameWithinMs } from '../../src/command-line/interruption.ts'
import { openCallers } from '../scenarios/callers.ts'
import { type RunningProcesses, startProcesses } from '../scenarios/processes.ts'
import { type RestartResult, restartUnderLoad } from '../scenarios/rolling-restart.ts'
import { createKey, type Env, processEnv } from '../scenarios/set-up.ts'
import { freePort } from '../support/listening.ts'
import { outputOf, runCommand } from '../support/process.ts'
import { without } from '../support/programs.ts'
import { samplesIn } from '../support/promtool.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const path = '/api/v1/locations?type=division'

const start = async (
  t: Test,
  more: Env = {},
): Promise<{ running: RunningProcesses; key: string; env: Env }> => {
  const redis = await testRedis(t)
  const env = processEnv('http://127.0.0.1:9', {
    ...redis.env,
    ABOHAWA_LOG__LEVEL: 'info',
    ...more,
  })
  // The file decides.
  if (more.ABOHAWA_CONFIG_FILE !== undefined) delete env.ABOHAWA_LOG__LEVEL
  const key = await createKey(env)
  return { running: await startProcesses(t, 2, env), key, env }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

// Processes start slowly: the parts share two, in the order of the file.
t.test('two gateways from their start to their end', async t => {
  const { running, key, env } = await start(t, {
    ABOHAWA_LOG__ACCESS: 'true',
    ABOHAWA_SERVER__DRAIN_FOR: '300ms',
  })
  const statuses = async (callers: number): Promise<number[]> => {
    const all = await openCallers(t, running.api, key, callers)
    return (await Promise.all(all.map(caller => caller.send(path)))).map(({ status }) => status)
  }

  const countOf = (msg: string) => running.logged().filter(line => line.msg === msg).length

  await t.test('both take connections, and operators reach each of them', async t => {
    t.strictSame(await statuses(64), Array(64).fill(200))
    const series = 'http_server_request_duration_seconds_count{endpoint="locations",status="200"}'
    const countOf = async (number: number) =>
      samplesIn((await sendRequest(`${running.ops(number)}/metrics`)).text).get(series) ?? 0
    const [one, two] = [await countOf(1), await countOf(2)]
    t.equal(one + two, 64)
    t.ok(one > 0 && two > 0, `each took connections: ${one}, ${two}`)
    for (const number of [1, 2])
      await until('each shows the other', async () => {
        const { body } = await sendRequest(`${running.ops(number)}/status`)
        return body.instances.length === 2
      })
    const { code, stdout } = await runCommand(['status', '--gateway', running.ops(2)], env)
    t.equal(code, 0)
    t.match(stdout, /Instances/)
  })

  await t.test('another configuration can not take a part of the requests', async t => {
    const port = new URL(running.api).port
    const other = {
      ...env,
      ABOHAWA_REDIS__URL: '',
      ABOHAWA_STORE__PATH: join(t.testdir(), 'other.db'),
      ABOHAWA_SERVER__PORT: port,
    }
    const serve = ['serve', '--processes', '2']
    const { code, stderr } = await runCommand(serve, other)
    t.equal(code, 1)
    t.match(
      stderr,
      new RegExp(
        `^abohawa: can't listen on 127\\.0\\.0\\.1:${port} \\(server\\.host, server\\.port\\): .*EADDRINUSE.*\n$`,
      ),
    )
    // So far as the port of operators, which nobody shares.
    const shared = {
      ...other,
      ABOHAWA_SERVER__REUSE_PORT: 'true',
      ABOHAWA_OPS__PORT: new URL(running.ops(1)).port,
    }
    t.match((await runCommand(serve, shared)).stderr, /\(ops\.host, ops\.port\): .*EADDRINUSE/)
  })

  await t.test('one that is killed is started again, and the other one goes on', async t => {
    const [first = 0, second] = running.pids()
    process.kill(first, 'SIGKILL')
    await until('its end is known', () =>
      running.lines.some(line => line.includes('process ended unexpectedly')),
    )
    t.strictSame(await statuses(16), Array(16).fill(200))
    await running.opened(3)
    const ended = running.logged().find(({ msg }) => msg === 'process ended unexpectedly')
    t.hasStrict(ended, { level: 'error', process: 1, reason: 'ended by SIGKILL' })
    t.equal(running.pids()[1], second)
    t.not(running.pids()[0], first)
    t.equal((await sendRequest(`${running.ops(1)}/readyz`)).status, 200)
    t.strictSame(await statuses(16), Array(16).fill(200))
  })

  await t.test('SIGHUP and SIGUSR2 reach all, also one that is only being started', async () => {
    process.kill(running.pids()[1] ?? 0, 'SIGKILL')
    const said = (msg: string, number: number) =>
      running.logged().some(line => line.msg === msg && line.process === number)
    await until('another is started', () => countOf('process started') === 4)
    running.child.kill('SIGHUP')
    running.child.kill('SIGUSR2')
    for (const number of [1, 2])
      for (const msg of ['catalogue reloaded', 'configuration unchanged', 'no log file to reopen'])
        await until(`${number}: ${msg}`, () => said(msg, number))
    await running.opened(4)
  })

  await t.test('a restart replaces each', async t => {
    const former = running.pids()
    running.child.kill('SIGALRM')
    running.child.kill('SIGALRM')
    await until('they are restarted', () =>
      running.lines.some(line => line.includes('"processes restarted"')),
    )
    t.ok(running.pids().every(pid => !former.includes(pid)))
    t.notOk(former.some(isAlive))
    t.equal(countOf('restarting processes one by one'), 1, 'one restart at a time')
  })

  await t.test('a restart that is asked for during another one follows it', async () => {
    const restarts = () => countOf('restarting processes one by one')
    const [before, ended, [first = 0]] = [restarts(), countOf('processes restarted'), running.pids()]
    // It waits for this one.
    process.kill(first, 'SIGSTOP')
    running.child.kill('SIGALRM')
    await until('it is under way', () => restarts() === before + 1)
    const at = performance.now()
    await until('the next one is no repetition of the same signal', () => performance.now() - at > 1_100)
    running.child.kill('SIGALRM')
    process.kill(first, 'SIGCONT')
    await until('both are over', () => countOf('processes restarted') === ended + 2)
    t.equal(restarts(), before + 2)
  })

  await t.test('the end loses no request that was begun, and leaves no process', async t => {
    const pids = running.pids()
    const callers = await openCallers(t, running.api, key, 8)
    t.ok((await Promise.all(callers.map(caller => caller.send(path)))).every(({ status }) => status === 200))
    const last = callers.map(caller => caller.send(path))
    // As a terminal does: to every process of the job.
    for (const pid of [running.child.pid ?? 0, ...pids]) process.kill(pid, 'SIGINT')
    t.ok((await Promise.all(last)).every(({ status }) => status === 200))
    t.equal(await running.exited, 0)
    t.notOk(pids.some(isAlive))
  })

  await t.test('the log is whole, and says whose its lines are', async t => {
    t.doesNotThrow(() => running.lines.map(line => JSON.parse(line)))
    for (const msg of ['answered', 'stopped'])
      for (const number of [1, 2])
        t.ok(
          running.logged().some(line => line.msg === msg && line.process === number),
          `${number}: ${msg}`,
        )
  })
})

const fromLoad = (t: Test, { answered, faults, exitCode }: RestartResult): void => {
  t.strictSame(faults, [], `${answered} requests`)
  t.ok(answered > 300, `${answered} requests`)
  t.equal(exitCode, 0)
}

t.test('a restart one after the other loses no request of clients that try again', async t => {
  const result = await restartUnderLoad(t, t.testdir(), 5)
  fromLoad(t, result)
  t.ok(result.counted >= result.answered, `${result.counted} counted, ${result.answered} answered`)
})

// A separate network, whose setting is no other's.
const migrate = 'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req && exec "$@"'
const inNetwork = ['-n', 'sh', '-c', migrate, 'sh']
const withoutNetworks = without(
  'root on Linux 5.14, for a network of its own',
  ...['unshare', ...inNetwork, 'true'],
)

t.test('where the kernel hands connections on, none is lost', { skip: withoutNetworks }, async t => {
  const script = join(import.meta.dirname, '../scenarios/rolling-restart.ts')
  const args = [...inNetwork, process.execPath, script, t.testdir()]
  const result = JSON.parse(await outputOf(t, ['unshare', ...args])) as RestartResult
  fromLoad(t, result)
  t.equal(result.counted, result.answered, 'three processes on one file count every request once')
})

t.test('gateways end with the process that started them, whatever ended it', async t => {
  const { running } = await start(t)
  const pids = running.pids()
  running.child.kill('SIGKILL')
  await until('they are gone', () => !pids.some(isAlive))
})

t.test('a stop does not wait for gateways that are being started', async t => {
  const { running } = await start(t)
  running.child.kill('SIGALRM')
  const isStarted = () => running.logged().filter(({ msg }) => msg === 'process started').length > 2
  await until('one is started', isStarted)
  running.child.kill('SIGTERM')
  t.equal(await running.exited, 0)
  t.notOk(running.pids().some(isAlive))
})

t.test('a stop leaves one that is being replaced to its end', async t => {
  const { running, key } = await start(t, { ABOHAWA_SERVER__DRAIN_FOR: '3s' })
  const [caller] = await openCallers(t, running.api, key, 1)
  t.equal((await caller?.send(path))?.status, 200)
  const linesOf = (event: string) => running.logged().filter(line => line.msg === event && line.process === 1)
  running.child.kill('SIGALRM')
  await until('the first one leaves', () => linesOf('stopping').length === 1)
  // Sooner, its two signals would be one.
  await pause(sameWithinMs + 100)
  running.child.kill('SIGTERM')
  t.equal(await running.exited, 0)
  t.equal(linesOf('stopped').length, 1)
})

t.test('the process above the others follows the level of the log', async t => {
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(file, '')
  const { running } = await start(t, { ABOHAWA_CONFIG_FILE: file })
  const { pid } = running.child
  const children = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  const before = children()
  writeFileSync(file, 'log: { level: error }\n')
  running.child.kill('SIGHUP')
  running.child.kill('SIGALRM')
  // Those write no line any more.
  await until(
    'both are new',
    () => children().length === 2 && !children().some(each => before.includes(each)),
  )
  running.child.kill('SIGTERM')
  t.equal(await running.exited, 0)
  const messages = running.logged().flatMap(line => (line.process === undefined ? line.msg : []))
  for (const later of ['processes restarted', 'stopped']) t.notOk(messages.includes(later), later)
})

t.test('a restart ends none for a broken file, and goes no further than one that can’t start', async t => {
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(file, '')
  const { running, key } = await start(t, { ABOHAWA_CONFIG_FILE: file })
  const pids = running.pids()
  const restart = async (text: string, reason: RegExp) => {
    writeFileSync(file, text)
    running.child.kill('SIGALRM')
    await until(String(reason), () =>
      running.lines.some(line => line.includes('"processes not restarted') && reason.test(line)),
    )
  }
  await restart('server: [', /gateway\.yaml:1/)
  t.strictSame(running.pids(), pids)
  const noFiles = 'server: { tls: { cert: /nowhere/a.crt, key: /nowhere/a.key } }\n'
  await restart(noFiles, /process 1 ended before it was ready/)
  t.equal(running.pids()[1], pids[1])
  await restart(noFiles, /stays, because not all of them serve/)
  const [caller] = await openCallers(t, running.api, key, 1)
  t.equal((await caller?.send(path))?.status, 200, 'the other one serves on')
  writeFileSync(file, '')
  await running.opened(3)
  t.equal(running.pids()[1], pids[1], 'once the file is well, the first one is back by itself')
})

t.test('a process that hangs is killed after a while, and one that ends is not', async t => {
  const began = 'process.send(0); setInterval(() => {}, 1000)'
  const folder = t.testdir({ 'ends.js': began, 'hangs.js': `process.on('SIGTERM', () => {}); ${began}` })
  const killed: string[] = []
  const end = async (name: string, withinMs: number) => {
    const gateway = fork(join(folder, name))
    await once(gateway, 'message')
    await endInOrder({ gateway, ended: once(gateway, 'exit') }, withinMs, () => killed.push(name))
    return gateway.signalCode
  }
  t.equal(await end('ends.js', 60_000), 'SIGTERM')
  t.equal(await end('hangs.js', 50), 'SIGKILL')
  t.strictSame(killed, ['hangs.js'])
})

t.test('a stop ends in order what listens already, although it is not ready', async t => {
  const queried = Promise.withResolvers<void>()
  const ops = createServer((_, response) => {
    queried.resolve()
    response.writeHead(503).end()
  })
  ops.listen(0, '127.0.0.1')
  t.teardown(() => ops.close())
  await once(ops, 'listening')
  const opsUrl = `http://127.0.0.1:${(ops.address() as AddressInfo).port}`
  const config = { server: { drainForMs: 60_000, requestTimeoutMs: 0 }, provider: { totalTimeoutMs: 0 } }
  const supervisor = new URL('../../src/cli/serve/supervisor.ts', import.meta.url).href
  const folder = t.testdir({
    'listens.cjs': `process.on('SIGTERM', () => {
        require('node:fs').writeFileSync(__dirname + '/ended', '')
        process.exit(0)
      })
      process.send({ opsUrl: '${opsUrl}' })
      setInterval(() => {}, 1000)`,
    'supervises.mjs': `import { supervise } from '${supervisor}'
      process.argv[1] = new URL('listens.cjs', import.meta.url).pathname
      const [log, config] = [{ info() {}, error() {} }, ${JSON.stringify(config)}]
      process.exit(await supervise(1, { args: [], log, config, check: async () => config, reopenLog() {} }))`,
  })
  const running = fork(join(folder, 'supervises.mjs'))
  const exited = once(running, 'exit')
  await queried.promise
  running.kill('SIGTERM')
  await exited
  t.ok(existsSync(join(folder, 'ended')), 'and does not kill it')
})

t.test('a restart waits a while for a process, and then goes no further', async t => {
  const serving = () => ({ ready: Promise.resolve(true), isServing: true, isLeaving: false })
  const starting = () => ({ ...serving(), ready: new Promise<boolean>(() => {}), isServing: false })
  const children = new Map([1, 2].map(number => [number, serving()]))
  const ended: number[] = []
  const restart = async () => {
    let reason = ''
    const end = async (number: number) => {
      ended.push(number)
      children.set(number, starting())
    }
    replaceInOrder(children, 50, end).catch(({ message }) => {
      reason = message
    })
    await until('it goes no further', () => reason !== '')
    return reason
  }
  t.equal(await restart(), 'process 1 is not ready after 0.05 s')
  t.equal(await restart(), 'process 1 stays, because not all of them serve')
  t.strictSame(ended, [1])
})

t.test('what is wrong at the start is said once, and ends all', async t => {
  const env = processEnv('http://127.0.0.1:9', {
    ABOHAWA_REDIS__URL: 'redis://127.0.0.1:9',
    ABOHAWA_SERVER__PORT: String(await freePort()),
  })
  const serve = ['serve', '--processes', '2']
  const { code, stderr } = await runCommand(serve, env)
  t.equal(code, 1)
  t.equal(stderr.match(/redis\.url names 127\.0\.0\.1:9, which can't be used/g)?.length, 1, stderr)
  for (const [more, reason] of [
    [{ ABOHAWA_SERVER__PORT: '0' }, 'server.port is 0, but 2 processes share one port: set server.port'],
    [
      { ABOHAWA_REDIS__URL: '', ABOHAWA_STORE__PATH: ':memory:' },
      "store.path is :memory:, which 2 processes can't share",
    ],
    [{ ABOHAWA_OPS__PORT: '9090', ABOHAWA_HEALTH__PORT: '9091' }, 'set them further apart'],
    [{ ABOHAWA_OPS__PORT: '65535' }, 'set them further apart'],
  ] as const) {
    const { code, stderr } = await runCommand(serve, { ...env, ...more })
    t.equal(code, 1)
    t.match(stderr, reason)
    t.equal(stderr.trim().split('\n').length, 1, stderr)
  }
})
