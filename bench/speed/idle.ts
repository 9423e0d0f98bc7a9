// Idle connections, as browsers, mobile apps and pools of clients keep them: what each costs in resident memory, and whether busy
// callers notice them.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { type Env, metric, type Scope } from '../../test/scenarios/set-up.ts'
import { until } from '../../test/support/until.ts'
import { count, type Finding, median, ms, notMeasured, type Row } from '../row.ts'
import { expectBody, get, path, type World } from './contender.ts'
import { linesOf, startGateway } from './gateways.ts'
import { load } from './load.ts'
import { startReadyBody } from './others.ts'
import { loadCores, onCores, residentOf, serverCores } from './pinned.ts'
import { awayFromTurn, openWorld } from './world.ts'

const idle = 10_000
const busy = 100
const boundKiB = 12
const pairs = 15
const pairSeconds = 1
// A smaller difference means nothing on a machine with other users.
const noise = 0.1
// Well before the gateway closes an idle connection.
const renewAfterMs = 30_000
// Beside the connections, for files and listeners.
const moreDescriptors = 500

const collecting = new URL('servers/collect.ts', import.meta.url).href
/** Has a process collect its garbage at SIGWINCH. */
const collected: Env = { NODE_OPTIONS: `--import=${collecting}` }

type Server = {
  readonly name: string
  readonly pid: number
  readonly url: string
  /** File of its standard output. */
  readonly output: string
  readonly key: string
  /** The right body now. */
  body(): Promise<Buffer>
  /** Open connections by its own count, where it has one. */
  open?(): Promise<number>
}

const startOurs = async (scope: Scope, world: World, id: string): Promise<Server> => {
  const env = world.env({
    ABOHAWA_STORE__PATH: join(world.folder, `${id}.db`),
    ABOHAWA_SERVER__MAX_CONNECTIONS: String(idle * 2),
    ...collected,
  })
  const [issued] = await issueKeys(env, ['enterprise'])
  const { child, urls, output } = await startGateway(scope, world.folder, serverCores[0], env)
  return {
    name: 'Abohawa, embedded store',
    pid: child.pid ?? 0,
    url: urls.api ?? '',
    output,
    key: issued?.key ?? '',
    body: async () => (await world.reference()).body,
    open: () => metric(urls.ops ?? '', 'abohawa_connections'),
  }
}

const startReady = async (
  scope: Scope,
  world: World,
  kind: 'raw' | 'fastify',
  name: string,
): Promise<Server> => {
  const { child, urls, output } = await startReadyBody(scope, world, kind, { env: collected })
  return {
    name,
    pid: child.pid ?? 0,
    url: urls.api ?? '',
    output,
    key: 'as-long-as-a-key-of-the-gateway-is-here',
    body: async () => world.body,
  }
}

/** Resident KiB once all garbage is collected. */
const settledKiB = async ({ pid, output }: Server): Promise<number> => {
  const collections = (): Promise<number> => linesOf(output, '"collected"')
  const before = await collections()
  process.kill(pid, 'SIGWINCH')
  await until('garbage is collected', async () => (await collections()) > before, 20_000)
  return (await residentOf(pid)).now * 1024
}

type Resting = {
  /** So many connections got their answer and are open. */
  readonly right: number
  /** The same after one more request on each. */
  renew(): Promise<number>
}

/** Opens the idle connections; they are closed with the row. */
const rest = async (scope: Scope, { url, key }: Server): Promise<Resting> => {
  const script = new URL('idle-callers.ts', import.meta.url).pathname
  const args = [script, url, path, key, String(idle)]
  const child = spawn(...onCores(loadCores, process.execPath, args), { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  scope.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<number> => {
    const { value, done } = await lines.next()
    if (done) throw new Error('the callers that rest have ended')
    return (JSON.parse(value) as { right: number }).right
  }
  return {
    right: await next(),
    renew: () => {
      child.stdin.write('\n')
      return next()
    },
  }
}

/** Serves the busy callers for a while, so that what is measured next is not a process that has just started. */
const warmed = async (world: World, server: Server): Promise<void> => {
  expectBody(await get(server.url + path, { 'x-api-key': server.key }), await server.body())
  await loadOf(world, server, 2)
}

const loadOf = (world: World, { url, key }: Server, seconds: number) =>
  load(world.folder, { url, paths: [path], keys: [key] }, seconds, { atOnce: busy })

/** What each idle connection of a server costs. */
const memoryOf = async (
  scope: Scope,
  world: World,
  server: Server,
): Promise<{ resting: Resting; kiB: number; what: string; figures: Finding['figures'] }> => {
  await warmed(world, server)
  const before = await settledKiB(server)
  const resting = await rest(scope, server)
  const after = await settledKiB(server)
  const kiB = (after - before) / idle
  const what = `${kiB.toFixed(1)} KiB (${(before / 1024).toFixed(0)} MiB before, ${(after / 1024).toFixed(0)} MiB with them; ${count(resting.right)} of ${count(idle)} answered)`
  return { resting, kiB, what, figures: { kiB, before, after, right: resting.right } }
}

const maxDescriptors = async (): Promise<number> =>
  Number(/^Max open files\s+\d+\s+(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8'))?.[1])

export const idleConnections: Row = {
  id: 'idle',
  method:
    `${count(idle)} connections that made one request each and are kept. Resident memory as the kernel reports it, before and after, each ` +
    `once all garbage is collected, for each of them. Then two gateways in turn, one with the idle connections and one without, ${busy} ` +
    `connections that send the next request on the response to the last for ${pairSeconds} s, ${pairs} times: the median of the ` +
    'ratios of their p99. `server.maxConnections` is raised for it.',
  run: async (scope, progress) => {
    const most = await maxDescriptors()
    if (most < idle + moreDescriptors)
      return {
        findings: [
          notMeasured(`${count(idle)} idle connections`, `a process may open ${most} files (ulimit -n)`),
        ],
      }
    progress('starts everything')
    const world = await openWorld(scope)
    const others: Finding[] = []
    for (const [kind, name] of [
      ['raw', 'raw node:http'],
      ['fastify', 'bare Fastify'],
    ] as const) {
      progress(`idle connections, ${name}`)
      const ended: (() => unknown)[] = []
      const own = { teardown: (end: () => unknown) => void ended.push(end) }
      try {
        const server = await startReady(own, world, kind, name)
        await awayFromTurn(30)
        const { what, figures } = await memoryOf(own, world, server)
        others.push({ what: `the same, ${name}`, bar: '—', measured: what, met: null, figures })
      } finally {
        for (const end of ended.reverse()) await end()
      }
    }

    progress('idle connections, Abohawa')
    const [held, free] = [await startOurs(scope, world, 'held'), await startOurs(scope, world, 'free')]
    await warmed(world, free)
    await awayFromTurn(30)
    const { resting, kiB, what, figures } = await memoryOf(scope, world, held)
    let renewedAt = performance.now()
    let right = resting.right
    const p99s: { held: number; free: number }[] = []
    let wrong = 0
    // The first pair warms up.
    for (let pair = 0; pair <= pairs; pair++) {
      progress(`pair ${pair} of ${pairs}`)
      if (performance.now() - renewedAt > renewAfterMs) {
        renewedAt = performance.now()
        right = Math.min(right, await resting.renew())
      }
      const both = {
        held: await loadOf(world, held, pairSeconds),
        free: await loadOf(world, free, pairSeconds),
      }
      wrong += both.held.wrong + both.free.wrong
      if (pair > 0) p99s.push({ held: both.held.p99, free: both.free.p99 })
    }
    const open = (await held.open?.()) ?? 0
    const ratio = median(p99s.map(pair => pair.held / pair.free))
    const [heldP99, freeP99] = [median(p99s.map(pair => pair.held)), median(p99s.map(pair => pair.free))]
    return {
      findings: [
        {
          what: `resident memory for each of ${count(idle)} idle connections, embedded store`,
          bar: `≤ ${boundKiB} KiB`,
          measured: what,
          met: kiB <= boundKiB && resting.right === idle,
          figures,
        },
        ...others,
        {
          what: `p99 of ${busy} busy connections beside them, of that without`,
          bar: `≤ 1 × (a gap under 10 % is none)`,
          measured:
            `${ratio.toFixed(2)} × (${ms(heldP99)} and ${ms(freeP99)}, medians of ${pairs} pairs); ` +
            `${count(open)} connections open at the end; ${wrong} answers wrong`,
          met: ratio <= 1 + noise && wrong === 0 && right === idle && open >= idle,
          figures: { ratio, heldP99, freeP99, open, wrong },
        },
      ],
      notes: [
        `With the defaults the gateway keeps ${count(idle)} connections in all (\`server.maxConnections\`): the next one closes the 156 ` +
          'that have been idle for longest. Each is closed after 75 s (`server.keepAliveTimeout`) without a request.',
      ],
    }
  },
}
