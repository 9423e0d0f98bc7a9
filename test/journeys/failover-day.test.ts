// Without it a fleet could leave new places without weather during a long outage of its primary upstream.

import type { StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { processEnv } from '../scenarios/set-up.ts'
import { manualClock } from '../support/manual-clock.ts'
import { cleanEnv, spawnProgram } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { type Answer, sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const minuteMs = 60_000
const stepMs = 10 * minuteMs
const steps = (8 * 60 * minuteMs) / stepMs

const main = new URL('../../src/main.ts', import.meta.url).pathname

/** A gateway in a separate process, whose clock stands still; resolves with its address and what kills it. */
const startThird = async (t: Test, env: Record<string, string>, now: number) => {
  const line = [process.execPath, main, 'serve', '--moved-clock', String(now)]
  const stdio: StdioOptions = ['ignore', 'ignore', 'inherit', 'ipc']
  const { child, exited } = spawnProgram(t, line, { env: cleanEnv(env), stdio })
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  const [{ ready }] = (await once(child, 'message')) as [{ ready: string }]
  return { url: ready, kill }
}

const upstreamOf = ({ headers }: Answer) => / upstream=([\w-]+)/.exec(headers['cache-status'] ?? '')?.[1]

t.test('eight hours without the first upstream, and every cold cell has an answer', async t => {
  const redis = await testRedis(t)
  // Redis expires entries by the machine's clock.
  const clock = manualClock(Date.now())
  const iso = () => new Date(clock.now()).toISOString()
  const [first, second] = await Promise.all([
    startProvider(t, ['--runs', 'none', '--seed', '1'], iso()),
    startProvider(t, ['--runs', 'none', '--seed', '2', '--limits', 'free'], iso()),
  ])
  const env = {
    ...redis.env,
    // The second is the free service, with its limits.
    ABOHAWA_PROVIDER__FALLBACKS: JSON.stringify([{ baseUrl: second.url }]),
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '200ms',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '800ms',
    ABOHAWA_TEST_CACHE__LEASE_FOR: '300ms',
  }
  const setting = { providerUrl: first.url, clock, env }
  const [third, ...fleet] = await Promise.all([
    startThird(t, processEnv(first.url, env), clock.now()),
    startGateway(t, setting),
    startGateway(t, setting),
  ])
  const [one, two] = fleet as [TestGateway, TestGateway]
  const key = one.keys.enterprise ?? ''
  let next = 0
  /** A point of another cell each time. */
  const coldPath = () => {
    next += 1
    return `/weather/coords/${(22 + (next % 40) / 10).toFixed(1)}/${(88.5 + Math.floor(next / 40) / 10).toFixed(1)}`
  }
  const popular = ['/weather/coords/23.8/90.4', '/weather/coords/24.9/91.9']
  for (const path of popular) t.equal(upstreamOf(await one.get(path)), 'primary')

  await first.steer({ fault: 'reset' })
  await second.steer({ hold: true })
  const path = coldPath()
  const lost = sendRequest(`${third.url}/api/v1${path}`, { key }).catch(() => undefined)
  await until('the third loads', async () => (await second.state()).inFlight === 1)
  const waiting = fleet.map(gateway => gateway.get(path))
  await third.kill()
  await lost
  await second.steer({ hold: false })
  t.strictSame((await Promise.all(waiting)).map(upstreamOf), ['fallback-1', 'fallback-1'])

  const begun = performance.now()
  const found = new Map<string, number>()
  const count = (what: string) => found.set(what, (found.get(what) ?? 0) + 1)
  for (let step = 0; step < steps; step += 1) {
    clock.advance(stepMs)
    await Promise.all([first, second].map(provider => provider.steer({ now: iso() })))
    const cold = await Promise.all([one, two, one, two].map(gateway => gateway.get(coldPath())))
    for (const answer of cold) count(`cold ${answer.status} ${upstreamOf(answer)}`)
    for (const path of popular) count(`popular ${(await two.get(path)).status}`)
  }
  t.strictSame(Object.fromEntries(found), {
    'cold 200 fallback-1': steps * 4,
    'popular 200': steps * popular.length,
  })
  const [ofFirst, ofSecond] = [await first.state(), await second.state()]
  // The circuit waits by the machine's time.
  const most = 40 + (performance.now() - begun) / 500
  t.ok(ofFirst.points - popular.length < most, `the first was probed, and not used: ${ofFirst.points} points`)
  t.equal(ofSecond.refused, 0, 'the limits of the second were kept')
  // While it looks for a newer one, a gateway may still serve the entry from before.
  for (const path of popular)
    await until('it is refreshed', async () => upstreamOf(await one.get(path)) === 'fallback-1')

  await first.steer({ fault: 'none' })
  for (const { metric } of fleet)
    await until('a probe has closed the circuit', async () => (await metric('abohawa_upstream_in_use')) === 0)
  t.equal(upstreamOf(await one.get(coldPath())), 'primary')
  const { points } = await first.state()
  t.equal(upstreamOf(await one.get(popular[0] ?? '')), 'fallback-1', 'what is fresh stays')
  // An hour and its jitter later.
  clock.advance(80 * minuteMs)
  await Promise.all([first, second].map(provider => provider.steer({ now: iso() })))
  for (const path of popular)
    await until(
      'it is loaded from the first again',
      async () => upstreamOf(await one.get(path)) === 'primary',
    )
  t.ok((await first.state()).points - points < 20, 'and nothing else is loaded again')
})
