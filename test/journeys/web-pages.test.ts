// Without it a page of an allowed origin could fail in a real browser to read answers, figures and errors.

import t, { type Test } from 'tap'
import { withoutBrowser as skip, startBrowser } from '../support/browser.ts'
import { startProvider } from '../support/provider.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { startGateway } from '../support/start-gateway.ts'

const { url: origin } = await startScriptedProvider(t, (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>an app</title>')
})
const provider = await startProvider(t)
const open = await startBrowser(t)

// Runs in the page.
const ask = (
  url: string,
  headers: object,
) => `fetch(${JSON.stringify(url)}, { headers: ${JSON.stringify(headers)} })
  .then(async response => ({
    status: response.status,
    seen: Object.fromEntries(response.headers),
    body: response.status === 304 ? null : await response.json(),
  }), error => ({ refused: String(error) }))`

type Seen = { status?: number; seen: Record<string, string>; body: Record<string, unknown>; refused?: string }

const start = (t: Test) =>
  startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_SERVER__CORS__ORIGINS: origin } })

t.test('a page on a configured origin reads answers, figures and errors', { skip }, async t => {
  const gateway = await start(t)
  const page = await open({}, t)
  await page.goto(origin)
  const fetchThere = (path: string, headers: object): Promise<Seen> =>
    page.evaluate(ask(`${gateway.apiUrl}/api/v1${path}`, headers))
  const key = { 'x-api-key': gateway.keys.free ?? '' }

  const first = await fetchThere('/weather/district/3026?lang=en', key)
  t.match(first, {
    ...{ status: 200, body: { location: { name: 'Dhaka' } } },
    seen: {
      ...{ 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '99', ratelimit: /^"daily";r=99;t=/ },
      ...{ etag: /^W\//, 'x-request-id': /./, 'cache-status': /^abohawa; / },
    },
  })
  const again = await fetchThere('/weather/district/3026?lang=en', {
    ...key,
    'if-none-match': first.seen.etag,
    'x-request-id': 'page-1',
  })
  t.hasStrict(again, { status: 304, seen: { 'x-ratelimit-remaining': '98', 'x-request-id': 'page-1' } })
  t.has(await fetchThere('/locations?type=district', {}), { status: 401, body: { code: 'key_missing' } })
  t.hasStrict(await fetchThere('/nowhere', key), { status: 404, seen: { 'x-ratelimit-remaining': '97' } })
})

t.test('100 preflights end a connection', async t => {
  const gateway = await start(t)
  const many = await openRaw(t, gateway.apiUrl)
  const preflight = `OPTIONS /api/v1/locations HTTP/1.1\r\nhost: x\r\norigin: ${origin}\r\n\r\n`
  many.send(preflight.repeat(100))
  const answers = await many.answersToTheEnd()
  t.equal(answers.length, 100, 'as with a wrong key')
  t.equal(answers.at(-1)?.headers.get('connection'), 'close')
  t.ok(answers.every(({ status }) => status === 204))
})
