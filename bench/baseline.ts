// The first figures of a gateway: how soon it answers after its start, how long a cold and a warm answer take, what
// memory it holds with every cell of the catalogue. Measures one idle machine with one caller at a time; says nothing
// about throughput, and compares with nobody.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { openCatalogue } from '../src/catalogue/live-catalogue.ts'
import { runCommand, startCommand } from '../test/support/process.ts'

const teardowns: (() => unknown)[] = []
const scope = { teardown: (fn: () => unknown) => void teardowns.push(fn) }
const rounds = 7

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const at = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0
const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ms`

const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
try {
  const provider = await startCommand(scope, ['provider', '--port', '0', '--json'], ['provider'])
  const env = {
    ABOHAWA_PROVIDER__BASE_URL: provider.urls.provider ?? '',
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
    ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
    ABOHAWA_STORE__PATH: join(folder, 'store.db'),
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_QUOTA__TIERS__BENCH: '1000000000',
    ABOHAWA_LOG__ACCESS: 'false',
  }
  const { stdout } = await runCommand(
    ['keys', 'create', '--subscriber', 'Bench', '--tier', 'bench', '--json'],
    env,
  )
  const headers = { 'x-api-key': JSON.parse(stdout).key as string }
  const ask = async (url: string): Promise<number> => {
    const started = performance.now()
    const { statusCode, body } = await request(url, { headers })
    await body.arrayBuffer()
    if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`)
    return performance.now() - started
  }

  const starts: number[] = []
  for (let round = 0; round < rounds; round++) {
    const started = performance.now()
    const gateway = await startCommand(scope, ['serve'], ['api'], env)
    await ask(`${gateway.urls.api}/api/v1/locations?type=division`)
    starts.push(performance.now() - started)
    gateway.child.kill('SIGTERM')
    await gateway.exited
    process.stderr.write(`start ${round + 1} of ${rounds}\r`)
  }

  const bounds = { south: 20, north: 27, west: 87.5, east: 93 }
  const catalogueFile = new URL('../locations.json', import.meta.url).pathname
  const loads: number[] = []
  for (let round = 0; round < rounds; round++) {
    const started = performance.now()
    const catalogue = await openCatalogue({ path: catalogueFile, bounds, pollMs: 3_600_000 })
    loads.push(performance.now() - started)
    catalogue.close()
  }

  const gateway = await startCommand(scope, ['serve'], ['api', 'ops'], env)
  const resident = async (): Promise<number> => {
    const status = await readFile(`/proc/${gateway.child.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
  }
  const empty = await resident()
  const api = `${gateway.urls.api}/api/v1`
  const places = JSON.parse(await readFile(new URL('../locations.json', import.meta.url), 'utf8'))
    .locations as {
    id: string
    type: string
  }[]

  const cold: number[] = []
  for (let i = 0; i < 40; i++)
    cold.push(await ask(`${api}/weather/coords/${(20.1 + i * 0.1).toFixed(1)}/87.6`))
  const warm: number[] = []
  for (let i = 0; i < 3_000; i++) warm.push(await ask(`${api}/weather/coords/20.1/87.6`))

  const filled = performance.now()
  for (let i = 0; i < places.length; i += 64) {
    await Promise.all(places.slice(i, i + 64).map(({ type, id }) => ask(`${api}/weather/${type}/${id}`)))
    process.stderr.write(`${Math.min(places.length, i + 64)} of ${places.length} places\r`)
  }
  const fillMs = performance.now() - filled
  const full = await resident()
  const metrics = await (await request(`${gateway.urls.ops}/metrics`)).body.text()
  const gauge = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1])
  const calls = gauge('abohawa_provider_request_duration_seconds_count\\{outcome="ok"\\}')

  const figures = {
    node: process.version,
    startToFirstAnswerMs: { best: Math.min(...starts), median: median(starts), rounds },
    catalogueLoadMs: { first: loads[0], median: median(loads), rounds },
    coldMs: { median: median(cold), p95: at(cold, 0.95), requests: cold.length },
    warmMs: { median: median(warm), p99: at(warm, 0.99), requests: warm.length },
    allPlacesMs: fillMs,
    cells: gauge('abohawa_cache_memory_entries'),
    timelineBytes: gauge('abohawa_cache_memory_bytes') / gauge('abohawa_cache_memory_entries'),
    providerCalls: calls,
    residentMiB: { atStart: empty, allCells: full },
  }
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(figures)}\n`)
  else
    process.stdout.write(
      `${[
        `Node ${figures.node}, one caller, provider without latency`,
        `start to first answer   ${ms(Math.min(...starts))} best, ${ms(median(starts))} median of ${rounds}`,
        `catalogue loaded in     ${ms(loads[0] ?? 0)} the first time, ${ms(median(loads))} median of ${rounds}`,
        `cold answer             ${ms(median(cold))} median, ${ms(at(cold, 0.95))} p95 of ${cold.length} cells`,
        `warm answer             ${ms(median(warm))} median, ${ms(at(warm, 0.99))} p99 of ${warm.length}`,
        `all ${places.length} places         ${ms(fillMs)} at 64 a time; ${figures.cells} cells, ${calls} provider calls in all`,
        `a timeline in memory    ${figures.timelineBytes.toFixed(0)} bytes`,
        `resident memory         ${empty.toFixed(0)} MiB at start, ${full.toFixed(0)} MiB with all cells`,
      ].join('\n')}\n`,
    )
} finally {
  for (const teardown of teardowns.reverse()) await teardown()
  await rm(folder, { recursive: true, force: true })
}
