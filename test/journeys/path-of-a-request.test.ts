// Without it a warm hit could run through files that docs/path-of-a-request.md does not list.

import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import t, { type Test } from 'tap'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { startGateway as start } from '../support/start-gateway.ts'

const root = join(import.meta.dirname, '..', '..')
const source = `${pathToFileURL(join(root, 'src')).href}/`
const page = readFileSync(join(root, 'docs/path-of-a-request.md'), 'utf8')

// Calls of code that the engine optimises in the background are not counted, and a busy machine ends that late.
for (const flag of ['--no-opt', '--no-maglev']) setFlagsFromString(flag)
t.teardown(() => {
  for (const flag of ['--opt', '--maglev']) setFlagsFromString(flag)
})

const intervalOf = setInterval

// Any file may use these.
const isFoundation = (file: string): boolean =>
  /^common\/(buffer-pool|calendar|clock|errors|flat-text|outside-text|key-redaction|redacted-url)\.ts$/.test(
    file,
  )

/** The files with a function that runs each time. `times` are so many that no timer fires as often meanwhile. */
const filesOf = async (t: Test, times: number, step: (i: number) => Promise<unknown>): Promise<string[]> => {
  const session = new Session()
  session.connect()
  t.teardown(() => session.disconnect())
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  for (let i = 0; i < times; i++) await step(i)
  const { result } = await session.post('Profiler.takePreciseCoverage')
  await session.post('Profiler.stopPreciseCoverage')
  return result
    .filter(
      ({ url, functions }) =>
        url.startsWith(source) && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) >= times),
    )
    .map(({ url }) => decodeURIComponent(url.slice(source.length)))
    .filter(file => !isFoundation(file))
    .sort()
}

const linesOf = (files: readonly string[]): number =>
  files.reduce((sum, file) => sum + readFileSync(join(root, 'src', file), 'utf8').split('\n').length - 1, 0)

// On a busy machine a load takes longer than the time between two probes of a gateway, which are no part of it.
t.intercept(globalThis, 'setInterval', {
  value: (...[step, ms = 0, ...given]: Parameters<typeof setInterval>) =>
    intervalOf(step, Math.min(ms * 1_000, 2 ** 31 - 1), ...given),
})

// The ops listener adds its routes at its first request, or a second later: not while calls are counted.
const startGateway: typeof start = async (...given) => {
  const gateway = await start(...given)
  await fetch(`${gateway.opsUrl}/livez`)
  return gateway
}

// One reading of the configuration calls some of its functions as often as all requests call theirs.
const env = { ABOHAWA_TEST_CONFIG__POLL_EVERY: '1h', ABOHAWA_TEST_CATALOGUE__POLL_EVERY: '1h' }

t.test('the page names the files of a warm hit', async t => {
  const provider = await startProvider(t)
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const sendRequest = async () => t.equal((await gateway.get('/weather/district/3026?lang=en')).status, 200)
  for (let i = 0; i < 20; i++) await sendRequest()
  const passed = await filesOf(t, 300, sendRequest)
  const [, diagram = ''] = /```text\n(.*?)```/s.exec(page) ?? []
  const named = [...diagram.matchAll(/^ *([a-z\d-]+(?:\/[a-z\d-]+)*\.ts)(?=[ \n])/gm)].map(([, file]) => file)
  t.strictSame(named.toSorted(), passed)
  t.comment(`a hit passes ${passed.length} files of ${linesOf(passed)} lines`)
})

/** What the page says a path passes at most. */
const mostOf = (path: string): { files: number; lines: number } => {
  const [, files, lines] = new RegExp(`^\\| ${path} \\| (\\d+) \\| ([\\d,]+) \\|$`, 'm').exec(page) ?? []
  return { files: Number(files), lines: Number(lines?.replaceAll(',', '')) }
}
const isWithin = (t: Test, path: string, passed: readonly string[]): void => {
  const [{ files, lines }, found] = [mostOf(path), linesOf(passed)]
  t.comment(`${path}: ${passed.length} files of ${found} lines: ${passed.join(' ')}`)
  t.ok(passed.length > 5, 'the coverage has something')
  t.ok(passed.length <= files, `${path} passes ${passed.length} files; the page says ${files}`)
  t.ok(found <= lines, `${path} passes ${found} lines; the page says ${lines}`)
}

t.test('the page says how many files a load over a fleet and a purge pass', async t => {
  const [provider, redis] = [await startProvider(t), await testRedis(t)]
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ...env, ...redis.env },
  })
  const request = async (i: number, cache: RegExp) => {
    const { status, headers } = await gateway.get(`/weather/coords/${(22 + i / 10).toFixed(1)}/90.4`)
    t.match([status, headers['cache-status']], [200, cache])
  }
  const loaded = await filesOf(t, 40, i => request(i, /fwd=miss/))
  const hit = await filesOf(t, 40, () => request(0, /; hit/))
  isWithin(
    t,
    'a load over a fleet, beyond a hit',
    loaded.filter(file => !hit.includes(file)),
  )
  const purge = async () => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ scope: '23.7,90.4' })
    const { status } = await fetch(`${gateway.opsUrl}/cache/purge`, { method: 'POST', body, headers })
    t.equal(status, 200)
  }
  await purge()
  isWithin(t, 'a purge', await filesOf(t, 60, purge))
})

t.test('the page says how many files a reload of the configuration passes', async t => {
  const provider = await startProvider(t)
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const reload = (i: number) => gateway.set({ 'cache.freshFor': `${60 + i}m` })
  await reload(0)
  isWithin(t, 'a reload', await filesOf(t, 40, reload))
})
