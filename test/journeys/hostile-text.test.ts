// Without it texts of a hostile provider could flood the log or send control characters to a terminal.

import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createKey } from '../scenarios/set-up.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { runCommand, startLimited } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { hostileText, rawControlIn } from '../support/raw-controls.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const longWords = (hostileText + 'x'.repeat(1_000)).repeat(20_000)
const maxOfALine = 4_000
const maxOfAReport = 4_500
const maxOfTheGateway = 1_500_000_000

const good = await startProviderHere(t, undefined, null)

type Body = {
  hourly_units: object
  hourly: { time: string[] }
  daily: { weather_code: unknown[] }
}
/** The provider's response to a weather request; `body` is the honest one. */
type Hostility = (response: ServerResponse, body: () => Promise<Body>) => Promise<void>
const refusing =
  (status: number): Hostility =>
  async response => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: true, reason: longWords }))
  }
const changing =
  (change: (body: Body) => unknown): Hostility =>
  async (response, body) => {
    const genuine = await body()
    change(genuine)
    response.end(JSON.stringify(genuine))
  }
const hostilities: Record<string, readonly [Hostility, code: string]> = {
  // Cut off, its reason can't be read.
  'a refusal, 400': [refusing(400), 'provider_denied'],
  'a unit of 20 MB': [
    changing(({ hourly_units }) => Object.assign(hourly_units, { temperature_2m: longWords })),
    'provider_garbled',
  ],
  'a time of 20 MB': [changing(({ hourly }) => hourly.time.splice(5, 1, longWords)), 'provider_garbled'],
  'a value of 20 MB': [
    changing(({ daily }) => daily.weather_code.splice(1, 1, longWords)),
    'provider_garbled',
  ],
  'no JSON': [async response => void response.end(`${hostileText}{`), 'provider_cut_off'],
  // Last: the gateway asks less of a provider that fails, and for a minute nothing of one whose limit is reached.
  'a failure, 500': [refusing(500), 'provider_failing'],
  'an overload, 503': [refusing(503), 'provider_overloaded'],
  'a limit, 429': [refusing(429), 'provider_limited'],
}

let hostility: Hostility = refusing(400)

const hostile = await startScriptedProvider(t, (request, response) => {
  const body = async () => (await fetch(`${good.url}${request.url}`)).json() as Promise<Body>
  if (request.url?.startsWith('/v1/forecast')) void hostility(response, body)
  else response.writeHead(404).end(hostileText)
})

t.test('whatever the provider writes, the log has short lines, and the screen no controls', async t => {
  const env = await singleGatewayEnv(t, hostile.url, {
    ABOHAWA_CATALOGUE__PATH: usualCatalogue,
    ABOHAWA_LOG__LEVEL: 'trace',
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
  })
  const key = await createKey(env, 'free')
  const gateway = await startLimited(t, maxOfTheGateway, env)
  const { api = '', ops = '' } = gateway.urls
  const isTame = (title: string, text: string, most: number) => {
    t.equal(rawControlIn(text), undefined, title)
    t.ok(text.length < most, `${title}: ${text.length} characters: ${text.slice(0, 200)}`)
  }

  for (const [i, [title, [lies, code]]] of Object.entries(hostilities).entries()) {
    // A load that succeeds: a provider that fails for long has one line, and not one for each request.
    hostility = async (response, body) => void response.end(JSON.stringify(await body()))
    t.equal((await sendRequest(`${api}/api/v1/weather/coords/25.${i}/89.4`, { key })).status, 200)
    hostility = lies
    const before = gateway.lines.length
    const place = `2${i % 4}.${i},90.4`
    const answer = await sendRequest(`${api}/api/v1/weather/coords/${place.replace(',', '/')}`, { key })
    t.equal(answer.status, 500, title)
    t.match(answer.body.error, /^no weather is available for this place right now: /)
    isTame(title, answer.text, 500)

    const report = await sendRequest(`${ops}/cache/cell?of=${place}`)
    t.equal(report.status, 200)
    const { lastFailure } = report.body.gateway
    t.equal(lastFailure.code, code, 'nothing before it is in the way')
    t.ok(report.text.length < maxOfAReport, `${report.text.length} characters of a report`)
    isTame(title, lastFailure.message, 2_001)

    for (const form of [[], ['--json']]) {
      const shown = await runCommand(['cache', 'show', place, '--gateway', ops, ...form], env)
      t.match(shown, { code: 0, stderr: '', stdout: /provider_/ }, 'the failure is shown')
      isTame(`cache show ${form}`, shown.stdout, maxOfAReport)
    }
    // After a 429 no upstream would load, so the first answer that fails for want of the limit begins an outage.
    const msg = code === 'provider_limited' ? 'provider outage started' : 'failed'
    const isOfIt = (line: { msg: string; code?: string }) => line.msg === msg && line.code === code
    await until('the failure has a line', () =>
      gateway.lines.slice(before).some(line => isOfIt(JSON.parse(line))),
    )
  }

  const closed = once(gateway.child, 'close')
  gateway.child.kill('SIGTERM')
  await closed
  for (const line of gateway.lines) {
    isTame('a line of the log', line, maxOfALine)
    JSON.parse(line)
  }
})
