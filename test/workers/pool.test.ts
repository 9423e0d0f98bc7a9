// Workers that are killed with SIGKILL at any moment: none of them takes a connection with it that it had not taken yet, the
// port stays open when all of them are dead, and one that dies while the others start is replaced. The workers answer with
// their pid; whole gateways are in test/journeys/workers.test.ts.

import type { ChildProcess } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config/load.ts'
import { createPool, type WorkerReport } from '../../src/workers/pool.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

cluster.setupPrimary({ exec: join(import.meta.dirname, '../support/tiny-worker.ts'), execArgv: [] })

const inEffect = readConfig({ files: [], env: {} })

const start = async (
  t: Test,
  count: number,
  onReady: (worker: WorkerReport) => void = () => {},
  { args = [], workerTimeoutMs = 60_000 }: { args?: string[]; workerTimeoutMs?: number } = {},
) => {
  const clock = manualClock()
  const ended: string[] = []
  const pool = createPool({
    args,
    folder: t.testdir(),
    clock,
    configuration: () => inEffect,
    workerTimeoutMs,
    observer: {
      onReady: worker => {
        // By this clock each has served for long when it ends, and is replaced at once.
        clock.advance(3_600_000)
        onReady(worker)
      },
      onEnded: ({ number }, how) => void ended.push(`${number}: ${how}`),
      onSilent: () => {},
      onHeardAgain: () => {},
    },
  })
  t.teardown(() => pool.stop())
  const url = new URL(await pool.start(count))
  const allReady = () =>
    until('all are ready', () => {
      const ready = pool.workers().filter(({ isReady }) => isReady)
      return ready.length === count ? ready : undefined
    })
  return { pool, url, clock, ended, allReady }
}

/** Opens a connection with one request; `open` has it until it is closed. Resolves with the pid that answered. */
const ask = ({ hostname, port }: URL, open: Set<Socket>): Promise<string | undefined> =>
  new Promise(resolve => {
    const socket = connect(Number(port), hostname)
    let text = ''
    open.add(socket)
    socket.setEncoding('latin1').on('data', more => {
      text += more
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      open.delete(socket)
      resolve(text || undefined)
    })
    socket.write('hello')
  })

const sockets = (): number =>
  readdirSync('/proc/self/fd').filter(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
    } catch {
      return false
    }
  }).length

t.test('none of the connections that 50 workers were handed when they died is lost', async t => {
  const count = 6
  const { pool, url, allReady } = await start(t, count)
  await allReady()
  const before = sockets()
  let deaths = 0
  for (; deaths < 50; deaths += count - 1) {
    const open = new Set<Socket>()
    const victims = (await allReady()).slice(1).map(({ pid }) => pid)
    // They take nothing of what they are handed from here on, as workers that die at this moment.
    for (const pid of victims) process.kill(pid, 'SIGSTOP')
    const asked = Array.from({ length: 3 * count }, () => ask(url, open))
    await until('each of them was handed a connection', () => open.size === victims.length)
    for (const pid of victims) process.kill(pid, 'SIGKILL')
    await until('what they were handed has ended', () => open.size === 0)
    const answers = await Promise.all(asked)
    t.notOk(answers.includes(undefined), `answered by ${answers}`)
    await until('they are gone', () => pool.workers().every(({ pid }) => !victims.includes(pid)))
  }
  t.equal(deaths, 50)
  await allReady()
  await until('no descriptor is left', () => sockets() <= before)
})

t.test('the port is held while all workers are dead, and what connects then is answered', async t => {
  const { url, allReady, ended } = await start(t, 2)
  const open = new Set<Socket>()
  const former = (await allReady()).map(({ pid }) => pid)
  for (const pid of former) process.kill(pid, 'SIGKILL')
  const asked: Promise<string | undefined>[] = []
  // From before their end is known until the next worker serves.
  await until(
    'another worker serves',
    () => {
      if (asked.length < 100) asked.push(ask(url, open))
      return open.size < asked.length
    },
    10_000,
  )
  const answers = await Promise.all(asked)
  t.notOk(answers.includes(undefined), `${answers.length} connections`)
  t.notOk(former.some(pid => answers.includes(String(pid))))
  t.equal(ended.length, 2)
})

t.test('the port is held when the last one dies before the exit of another is known', async t => {
  const { url, allReady } = await start(t, 2)
  await allReady()
  const [first, last] = Object.values(cluster.workers ?? {}).map(worker => worker?.process)
  if (!first || !last) throw new Error('there are two workers')
  const exits: (() => void)[] = []
  const emit = first.emit.bind(first) as (...args: unknown[]) => boolean
  first.emit = (...args: unknown[]): boolean => {
    if (args[0] !== 'exit') return emit(...args)
    exits.push(() => emit(...args))
    return true
  }
  for (const victim of [first, last]) {
    victim.kill('SIGKILL')
    await until('its channel has ended', () => victim.channel === null)
  }
  const asked = ask(url, new Set())
  await until('the first has ended', () => exits.length === 1)
  for (const exit of exits) exit()
  t.ok(await asked)
  await allReady()
})

t.test('one that can not be started is tried again, and holds up no stop', async t => {
  const { pool, allReady, ended } = await start(t, 2)
  await allReady()
  const restore = { cwd: process.cwd(), execArgv: [] }
  t.teardown(() => cluster.setupPrimary(restore))
  const cases = [
    // Told by an event, and thrown.
    { settings: { ...restore, cwd: '/nowhere' }, reason: /ENOENT/ },
    { settings: { ...restore, execArgv: ['x'.repeat(200_000)] }, reason: /E2BIG/ },
  ]
  for (const { settings, reason } of cases) {
    const told = () => ended.filter(line => reason.test(line)).length
    cluster.setupPrimary(settings)
    const [, victim] = await allReady()
    process.kill(victim?.pid ?? 0, 'SIGKILL')
    await until('it was tried', () => told() === 1)
    t.equal(pool.workers().length, 1)
    await t.rejects(pool.restart(2, inEffect), reason)
    cluster.setupPrimary(restore)
    await allReady()
    t.equal(told(), 1)
  }
  cluster.setupPrimary({ ...restore, cwd: '/nowhere' })
  const [, victim] = await allReady()
  process.kill(victim?.pid ?? 0, 'SIGKILL')
  await until('it was tried again', () => ended.filter(line => line.includes('ENOENT')).length === 2)
  await pool.stop()
})

t.test('a connection is kept when an exit is known before the end of its channel', async t => {
  const { url, allReady } = await start(t, 2)
  const before = await allReady()
  const [first, last] = Object.values(cluster.workers ?? {}).map(worker => worker?.process)
  if (!first || !last) throw new Error('there are two workers')
  first.kill('SIGSTOP')
  const open = new Set<Socket>()
  const asked = Array.from({ length: 6 }, () => ask(url, open))
  await until('the first was handed one', () => open.size === 1)
  first.emit('exit', null, 'SIGKILL')
  await until('another one has its place', async () => {
    const now = await allReady()
    return now.every(({ pid }) => pid !== first.pid)
  })
  const rest = Object.values(cluster.workers ?? {}).map(worker => worker?.process)
  for (const victim of rest) victim?.kill('SIGKILL')
  await until('their channels have ended', () => rest.every(victim => victim?.channel === null))
  first.kill('SIGKILL')
  t.notOk((await Promise.all(asked)).includes(undefined))
  t.equal(before.length, (await allReady()).length)
})

t.test('a stop tells all at once, also while a restart waits for one that has much to finish', async t => {
  const folder = t.testdir()
  const served: number[] = []
  const { pool, allReady } = await start(t, 2, ({ number }) => void served.push(number), {
    args: ['--ends-in', folder],
  })
  await allReady()
  const restarted = pool.restart(2, inEffect)
  const told = () => readdirSync(folder).filter(name => name.startsWith('told-')).length
  await until('the former one finishes', () => served.length === 3 && told() === 1)
  const stopped = pool.stop()
  await until('the two others were told', () => told() === 3, 10_000)
  writeFileSync(join(folder, 'may-end'), '')
  await stopped
  await restarted
})

t.test('a start that fails leaves no process', async t => {
  const clock = manualClock()
  let begun = 0
  const restore = { execArgv: [] }
  t.teardown(() => cluster.setupPrimary(restore))
  const pool = createPool({
    args: [],
    folder: t.testdir(),
    clock: {
      ...clock,
      now: () => {
        begun += 1
        // The third can't be started.
        if (begun === 2) cluster.setupPrimary({ execArgv: ['x'.repeat(200_000)] })
        return clock.now()
      },
    },
    configuration: () => inEffect,
    workerTimeoutMs: 60_000,
    observer: { onReady: () => {}, onEnded: () => {}, onSilent: () => {}, onHeardAgain: () => {} },
  })
  const forked: ChildProcess[] = []
  const onFork = (worker: Worker) => forked.push(worker.process)
  cluster.on('fork', onFork)
  t.teardown(() => cluster.off('fork', onFork))
  await t.rejects(pool.start(3), /E2BIG/)
  await pool.stop()
  t.equal(forked.filter(({ pid }) => pid !== undefined).length, 2)
  t.ok(
    forked.every(({ pid, exitCode, signalCode }) => pid === undefined || (exitCode ?? signalCode) !== null),
  )
})

t.test('one that a restart has replaced and that dies runs with the new settings again', async t => {
  const next = {
    ...inEffect,
    config: { ...inEffect.config, log: { ...inEffect.config.log, level: 'debug' as const } },
  }
  let isRestarting = false
  let isKilled = false
  const { pool, url, allReady, ended } = await start(
    t,
    2,
    ({ number, pid }) => {
      if (!isRestarting || isKilled || number !== 1) return
      isKilled = true
      process.kill(pid, 'SIGKILL')
    },
    { args: ['--asks'] },
  )
  await allReady()
  t.equal(await ask(url, new Set()), 'info')
  isRestarting = true
  await pool.restart(2, next)
  await until('the killed one was missed', () => ended.length === 1)
  await allReady()
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(url, new Set())))
  t.strictSame(new Set(answers), new Set(['debug']))
})

t.test('the port refuses once too many connections wait, and opens with the next worker', async t => {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as AddressInfo
  await new Promise(resolve => free.close(resolve))
  const { pool, url, allReady } = await start(t, 1, () => {}, { args: ['--port', String(port)] })
  const [former] = await allReady()
  const restore = { cwd: process.cwd() }
  t.teardown(() => cluster.setupPrimary(restore))
  const before = sockets()
  cluster.setupPrimary({ cwd: '/nowhere' })
  process.kill(former?.pid ?? 0, 'SIGKILL')
  const open = new Set<Socket>()
  const asked = Array.from({ length: 400 }, () => ask(url, open))
  await until('all are closed', () => open.size === 0, 4_000)
  t.notOk((await Promise.all(asked)).some(answer => answer !== undefined))
  t.equal(await ask(url, open), undefined)
  t.equal(pool.closings(), 1)
  t.ok(sockets() <= before, 'no descriptor is left')
  cluster.setupPrimary(restore)
  await allReady()
  t.ok(await ask(url, open))
})

t.test('the port refuses once connections have waited for 5 s, and no sooner', async t => {
  const { pool, url, allReady } = await start(t, 1)
  const [former] = await allReady()
  const restore = { cwd: process.cwd() }
  t.teardown(() => cluster.setupPrimary(restore))
  cluster.setupPrimary({ cwd: '/nowhere' })
  const since = performance.now()
  process.kill(former?.pid ?? 0, 'SIGKILL')
  const open = new Set<Socket>()
  t.teardown(() => {
    for (const socket of open) socket.destroy()
  })
  const asked = Array.from({ length: 10 }, () => ask(url, open))
  await until('4 s have passed', () => performance.now() - since > 4_000)
  t.equal(open.size, 10, 'they wait')
  t.equal(pool.closings(), 0)
  asked.push(ask(url, open))
  await until('all are closed', () => open.size === 0, 4_000)
  t.ok(performance.now() - since >= 5_000)
  t.notOk((await Promise.all(asked)).some(answer => answer !== undefined))
  t.equal(await ask(url, open), undefined, 'the port refuses')
  t.equal(pool.closings(), 1)
})

t.test('one that starts slowly is not ended for want of heartbeats that it can not send yet', async t => {
  const { pool, ended } = await start(t, 1, () => {}, { args: ['--slow'], workerTimeoutMs: 2_000 })
  t.equal(pool.timedOut(), 0)
  t.strictSame(ended, [])
})

t.test('one that dies while the others start is replaced', async t => {
  let isKilled = false
  const { allReady, ended } = await start(t, 3, ({ number, pid }) => {
    if (number !== 1 || isKilled) return
    isKilled = true
    process.kill(pid, 'SIGKILL')
  })
  t.equal((await allReady()).length, 3)
  t.strictSame(ended, ['1: ended by SIGKILL'])
})
