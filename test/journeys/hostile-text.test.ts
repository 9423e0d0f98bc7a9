// A provider that attacks with text: reasons and units of 20 MB, full of terminal controls. The gateway keeps them short and
// escaped, in its log, in its responses and in the output of `cache show`.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { keyFor } from '../../src/cache/entry-codec.ts'
import { cacheNamespaceIn } from '../../src/cache/upstream.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { hostileText, rawControlIn } from '../support/raw-controls.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const longWords = (hostileText + 'x'.repeat(1_000)).repeat(20_000)
const maxOfALine = 4_000
const maxOfTheGateway = 1_500_000_000

const good = await startProviderHere(t, undefined, null)

/** The provider's response to a weather request; `body` is the honest one. */
type Hostility = (response: ServerResponse, body: () => Promise<Record<string, unknown>>) => Promise<void>
const refusing =
  (status: number): Hostility =>
  async response => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: true, reason: longWords }))
  }
const hostilities: Record<string, readonly [Hostility, code: string]> = {
  // Cut off, its reason can't be read.
  'a refusal, 400': [refusing(400), 'provider_denied'],
  'a unit of 20 MB': [
    async (response, body) => {
      const genuine = await body()
      const units = genuine.hourly_units as Record<string, string>
      response.end(JSON.stringify({ ...genuine, hourly_units: { ...units, temperature_2m: longWords } }))
    },
    'provider_garbled',
  ],
  'a time of 20 MB': [
    async (response, body) => {
      const genuine = await body()
      const hourly = genuine.hourly as { time: string[] }
      const time = hourly.time.with(5, longWords)
      response.end(JSON.stringify({ ...genuine, hourly: { ...hourly, time } }))
    },
    'provider_garbled',
  ],
  'a value of 20 MB': [
    async (response, body) => {
      const genuine = await body()
      const daily = genuine.daily as Record<string, unknown[]>
      const weather_code = (daily.weather_code ?? []).with(1, longWords)
      response.end(JSON.stringify({ ...genuine, daily: { ...daily, weather_code } }))
    },
    'provider_garbled',
  ],
  'no JSON': [
    async response => {
      response.end(`${hostileText}{`)
    },
    'provider_cut_off',
  ],
  // Last: the gateway asks less of a provider that fails, and for a minute nothing of one whose limit is reached.
  'a failure, 500': [refusing(500), 'provider_failing'],
  'an overload, 503': [refusing(503), 'provider_overloaded'],
  'a limit, 429': [refusing(429), 'provider_limited'],
}

let hostility: Hostility = refusing(400)

const hostileProvider = async (): Promise<string> => {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = async () => (await fetch(`${good.url}${request.url}`)).json() as never
    if (request.url?.startsWith('/v1/forecast')) return hostility(response, body)
    response.writeHead(404).end(hostileText)
  }
  const server = createServer((request, response) => void answer(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A gateway that may not fill the machine's memory, and a key. */
const startLimited = async (t: Test, env: Record<string, string>) => {
  const issued = await runCommand(
    ['keys', 'create', '--create-store', '--subscriber', 'A', '--tier', 'free', '--json'],
    env,
  )
  const { key } = JSON.parse(issued.stdout)
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  execFileSync('prlimit', ['--pid', String(gateway.child.pid), `--data=${maxOfTheGateway}`])
  const { api = '', ops = '' } = gateway.urls
  return { key: key as string, gateway, api, ops }
}

t.test('whatever the provider writes, the log has short lines, and the screen no controls', async t => {
  const env = {
    ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_LOG__LEVEL: 'trace',
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
    ABOHAWA_PROVIDER__BASE_URL: await hostileProvider(),
  }
  const { key, gateway, api, ops } = await startLimited(t, env)

  for (const [i, [title, [hostile, code]]] of Object.entries(hostilities).entries())
    await t.test(title, async t => {
      // A load that succeeds: a provider that fails for long has one line, and not one for each request.
      hostility = async (response, body) => void response.end(JSON.stringify(await body()))
      t.equal((await sendRequest(`${api}/api/v1/weather/coords/25.${i}/89.4`, { key })).status, 200)
      hostility = hostile
      const place = `2${i % 4}.${i},90.4`
      const answer = await sendRequest(`${api}/api/v1/weather/coords/${place.replace(',', '/')}`, { key })
      t.equal(answer.status, 500)
      t.match(answer.body.error, /^no weather can be given for this place right now: /)
      t.ok(answer.text.length < 500, answer.text.slice(0, 500))

      const report = await sendRequest(`${ops}/cache/cell?of=${place}`)
      t.equal(report.status, 200)
      t.equal(report.body.gateway.lastFailure.code, code, 'nothing before it is in the way')
      t.ok(report.text.length < maxOfALine, `${report.text.length} characters of a report`)
      t.equal(rawControlIn(report.body.gateway.lastFailure.message), undefined, 'the report has no control')
      t.ok(report.body.gateway.lastFailure.message.length <= 2_000)

      for (const form of [[], ['--json']]) {
        const shown = await runCommand(['cache', 'show', place, '--gateway', ops, ...form], env)
        t.match(shown, { code: 0, stderr: '' })
        t.match(shown.stdout, /provider_/, 'the failure is shown')
        t.equal(rawControlIn(shown.stdout), undefined, `cache show ${form}`)
        t.ok(shown.stdout.length < maxOfALine, `${shown.stdout.length} characters on the screen`)
      }
      await until(
        'the failure has a line',
        () => gateway.lines.filter(line => JSON.parse(line).msg === 'failed').length === i + 1,
      )
    })

  const closed = once(gateway.child, 'close')
  gateway.child.kill('SIGTERM')
  await closed
  for (const line of gateway.lines) {
    const control = rawControlIn(line)
    if (control !== undefined) t.fail(control)
    if (line.length > maxOfALine) t.fail(`a line of ${line.length} characters: ${line.slice(0, 200)}`)
    JSON.parse(line)
  }
})

t.test('text that others write to Redis is short and escaped too: the message of a lease, a key', async t => {
  const redis = await testRedis(t)
  const env = {
    ABOHAWA_REDIS__URL: redis.url,
    ABOHAWA_REDIS__PREFIX: redis.prefix,
    // Long timeouts: on a busy machine a gateway would take Redis for down and call the provider itself.
    ABOHAWA_REDIS__COMMAND_TIMEOUT: '30s',
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_LOG__LEVEL: 'trace',
    ABOHAWA_PROVIDER__BASE_URL: good.url,
  }
  const { key, gateway, api, ops } = await startLimited(t, env)

  const config = loadConfig({ files: [], env })
  const store = await openStore(config, systemClock, { redisAway: () => {}, redisBack: () => {} })
  t.teardown(() => store.close())
  // The longest text that a store accepts.
  const words = longWords.slice(0, 3_000)

  const cell = createGrid(config.cache.cellDegrees).cellOf(23.7, 90.4)
  const leaseKey = keyFor(cacheNamespaceIn(config), cell.id)
  t.equal(await store.acquireLease(leaseKey, 'test', 30_000), 'acquired', 'the load is ours')
  const response = sendRequest(`${api}/api/v1/weather/coords/23.7/90.4`, { key })
  const cellNow = () => sendRequest(`${ops}/cache/cell?of=23.7,90.4`)
  await until('the gateway waits for our load', async () => (await cellNow()).body.gateway.loading)
  await store.releaseLease(leaseKey, 'test', JSON.stringify({ code: 'provider_failing', message: words }))
  const answer = await response
  t.equal(answer.status, 500)
  t.ok(answer.text.length < 500)
  for (const form of [[], ['--json']]) {
    const shown = await runCommand(['cache', 'show', '23.7,90.4', '--gateway', ops, ...form], env)
    t.equal(rawControlIn(shown.stdout), undefined)
    t.ok(shown.stdout.length < maxOfALine, `${shown.stdout.length} characters on the screen`)
    t.match(shown.stdout, 'title')
  }

  const closed = once(gateway.child, 'close')
  gateway.child.kill('SIGTERM')
  await closed
  t.ok(gateway.lines.some(line => JSON.parse(line).msg === 'failed'))
  for (const line of gateway.lines) {
    const control = rawControlIn(line)
    if (control !== undefined) t.fail(control)
    if (line.length > 8_000) t.fail(`a line of ${line.length} characters: ${line.slice(0, 100)}`)
  }
})
