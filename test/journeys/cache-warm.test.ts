// Without it warming could exceed the budget, load fresh cells again, run twice, or lose its counts when stopped.

import t, { type Test } from 'tap'
import { createKey } from '../scenarios/set-up.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { cleanEnv, product, runCommand, spawnProgram, startCommand } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

// Each has 54 cells of weight 3.
const boxes = ['23.5,90,24,90.8', '22.5,90,23,90.8', '21.5,90,22,90.8'] as const
const [box] = boxes

const setUp = async (t: Test, more: Record<string, string> = {}) => {
  const provider = await startProviderHere(t, undefined, null)
  const env = await singleGatewayEnv(t, provider.url, {
    ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '10',
    ABOHAWA_LOG__ACCESS: 'false',
    ...more,
  })
  const key = await createKey(env, 'free')
  const warm = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(['cache', 'warm', ...args, '--json'], env)
    return { code, stderr, report: stdout === '' ? undefined : JSON.parse(stdout) }
  }
  const points = async () => (await provider.state()).points
  return { provider, env, warm, key, points }
}

// One store and provider: the command loads the first box, and a gateway that is started then the others.
t.test('without a gateway and with one', async t => {
  const { env, provider, warm, key, points } = await setUp(t)
  const [box, second, third] = boxes
  t.hasStrict(await warm(box), {
    code: 0,
    report: { state: 'done', loaded: 54, by: 'this command, because no gateway answered' },
  })
  t.match(await warm(box), { code: 0, report: { loaded: 0, fresh: 54 } })
  const { budget } = JSON.parse((await runCommand(['status', '--json'], env)).stdout)
  t.equal(budget.windows[2].used, 162, 'charged to the budget that gateways share')
  const { urls } = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const read = async (path: string) =>
    (await sendRequest(`${urls.api}/api/v1${path}`, { key })).headers['cache-status']
  const send = async (method: string, body?: object) => {
    const response = await fetch(`${urls.ops}/cache/warm`, {
      method,
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    })
    return { status: response.status, body: await response.json() }
  }
  t.hasStrict(await send('GET'), { status: 200, body: { state: 'idle' } })

  await t.test('a gateway loads what is absent, once, and says beforehand what it weighs', async t => {
    t.hasStrict(await warm(), { code: 0, report: { target: 'the cells in demand', cells: 0, loaded: 0 } })
    t.hasStrict(await warm(second, '--dry-run'), {
      code: 0,
      report: { state: 'planned', cells: 54, toLoad: 54, weight: 162, loaded: 0 },
    })
    t.equal(await points(), 54)
    const first = await warm(second)
    t.match(first, {
      code: 0,
      stderr: /^22\.5,90,23,90\.8: 54 cells, 0 are fresh, 54 are to be loaded and weigh 162\.\n/,
      report: { state: 'done', loaded: 54, fresh: 0, failed: [], stoppedBy: null, by: urls.ops },
    })
    t.equal(await points(), 108)
    t.match(await warm(second), { code: 0, report: { loaded: 0, fresh: 54, weight: 0 } })
    t.match(await read('/weather/coords/22.7/90.4'), /hit; .*detail=memory/)
    t.match(await read('/weather/district/3026'), /hit; /, 'what the command loaded before')
    t.equal(await points(), 108)
  })

  await t.test('a second order is refused, an invalid one too, and the first can be stopped', async t => {
    for (const [body, error] of [
      [{ scope: 'all', tpo: 1 }, /^the body must be .*, got /],
      [{ scope: 'all', top: 3 }, /can't be combined with/],
    ] as const)
      t.match(await send('POST', body), { status: 400, body: { error } })
    t.match(await runCommand(['cache', 'warm', '--top', '0'], env), { code: 2, stderr: /from 1 to 100000/ })
    t.hasStrict(await send('GET'), { body: { state: 'done', stoppedBy: null } }, 'of the order before')
    await provider.steer({ hold: true })
    t.match(await send('POST', { scope: third }), { status: 202, body: { toLoad: 54 } })
    t.match(await send('POST', { scope: third }), { status: 409, body: { error: /being warmed already/ } })
    t.match(await warm(third), { code: 1, stderr: /refused: the cache is being warmed already/ })
    await until('a request is under way', async () => (await provider.state()).inFlight === 1)
    const stopped = send('DELETE')
    await provider.steer({ hold: false })
    const { body } = await stopped
    t.match(body, { state: 'stopped', stoppedBy: 'operator', loaded: /^[1-4]0$/ })
    t.hasStrict(await send('GET'), { body: { state: 'stopped', loaded: body.loaded } })
    const rest = { loaded: 54 - body.loaded, fresh: body.loaded }
    t.hasStrict(await warm(third), { code: 0, report: rest })
  })

  await t.test('by places, in words, and what is in demand', async t => {
    t.hasStrict(await warm('--top', '5'), {
      code: 0,
      report: { target: 'the 5 most populous places', failed: [] },
    })
    const { stdout } = await runCommand(['cache', 'warm', box], env)
    t.match(stdout, /^Warmed: 23\.5,90,24,90\.8\.\n {2}loaded +0\n {2}fresh already +54\n {2}failed +0\n/)
    t.hasStrict(await warm(), { code: 0, report: { target: 'the cells in demand' } })
  })
})

t.test('it leaves the reserve for cold cells, and stops where the budget is full', async t => {
  const { env, warm, key, points } = await setUp(t, {
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '60',
    ABOHAWA_PROVIDER__BUDGET__RESERVE: '0.5',
  })
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  t.match(await warm(box), {
    code: 1,
    report: { state: 'stopped', stoppedBy: 'budget', loaded: 10, failed: [], reason: /has no room/ },
  })
  t.equal(await points(), 10)
  const url = `${gateway.urls.api}/api/v1/weather/coords/22.3/91.8`
  const cold = await sendRequest(url, { key })
  t.equal(cold.status, 200, 'the reserve is there')
})

t.test('cells that fail are counted with the reason, and a provider that is down stops it', async t => {
  const { provider, warm } = await setUp(t, { ABOHAWA_TEST_PROVIDER__RETRIES: '0' })
  await provider.steer({ fault: 'internal-error', times: 1 })
  const { code, report } = await warm(box)
  t.equal(code, 1)
  t.match(report, {
    state: 'stopped',
    stoppedBy: 'provider',
    loaded: 0,
    failed: [{ code: 'provider_failing', cells: 10, message: /^the provider answered 500/ }],
  })
})

t.test('Ctrl-C ends it after the request under way, with the counts', async t => {
  const { env, provider, points } = await setUp(t)
  await provider.steer({ hold: true })
  const line = [product, 'cache', 'warm', box, '--json']
  const { child, said, closed } = spawnProgram(t, line, { env: cleanEnv(env) })
  await until('a request is under way', async () => (await provider.state()).inFlight === 1)
  child.kill('SIGINT')
  await provider.steer({ hold: false })
  t.equal(await closed, 1)
  const report = JSON.parse(said.stdout)
  t.hasStrict(report, { state: 'stopped', stoppedBy: 'operator', failed: [] })
  t.equal(report.loaded, await points())
  t.ok(report.loaded < 54, `${report.loaded}`)
})
