// Without it, a real browser with a hostile page could send the ops listener what the other tests only imitate.

import t from 'tap'
import { withoutBrowser as skip, startBrowser } from '../support/browser.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import type { TestGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import { refusedFor, startOps } from './ops-requests.ts'

const open = await startBrowser(t)
const question = '/provider/v1/forecast?latitude=23.8&longitude=90.4&current=temperature_2m'

// Each way that a page has to send a request elsewhere. The forms and links go into frames, which load for themselves.
const hostilePage = (ops: string): string => `<!doctype html><title>hostile</title>
<iframe name="a"></iframe><iframe name="b"></iframe><iframe name="c" src="${ops}${question}"></iframe>
<img src="${ops}${question}"><script src="${ops}/cache/cell?of=district/3026"></script>
<link rel="stylesheet" href="${ops}/metrics"><video src="${ops}${question}"></video>
<form id="get" target="a" action="${ops}/provider/v1/forecast"><input name="latitude" value="1"></form>
<form id="post" target="b" method="post" enctype="text/plain" action="${ops}/cache/purge"><input name='{"scope":"all","x":"' value='"}'></form>
<script>
get.submit(); post.submit()
const json = { 'content-type': 'application/json' }
const asks = [
  fetch('${ops}${question}'),
  fetch('${ops}${question}', { mode: 'no-cors', credentials: 'include' }),
  fetch('${ops}/cache/purge', { method: 'POST', headers: json, body: '{"scope":"all"}' }),
  fetch('${ops}/cache/purge', { method: 'POST', mode: 'no-cors', body: '{"scope":"all"}' }),
  fetch('${ops}/metrics', { headers: { authorization: 'Bearer guess' } }),
]
navigator.sendBeacon('${ops}/cache/purge', '{"scope":"all"}')
Promise.allSettled(asks).then(all => fetch('/told', { method: 'POST', body: JSON.stringify(
  all.map(one => one.status === 'rejected' ? 'unreadable' : one.value.type)) }))
</script>`

const startHostileSite = async (t: Teardown, ops: string) => {
  const told: string[] = []
  const { url } = await startScriptedProvider(t, async (request, response) => {
    if (request.url === '/told') {
      for await (const chunk of request) told.push(String(chunk))
      response.end()
    } else if (request.url === '/redirect') response.writeHead(302, { location: `${ops}${question}` }).end()
    else response.writeHead(200, { 'content-type': 'text/html' }).end(hostilePage(ops))
  })
  return { url, told }
}

const refusals = async ({ opsUrl }: TestGateway, ...reasons: string[]) =>
  (await Promise.all(reasons.map(reason => refusedFor(opsUrl, reason)))).reduce(
    (sum, count) => sum + count,
    0,
  )

t.test('a page of another site reads, spends and purges nothing', { skip }, async t => {
  for (const env of [{}, { ABOHAWA_OPS__TOKEN: '0123456789abcdef0123456789abcdef' }])
    await t.test(Object.keys(env).join() || 'no token', async t => {
      const { provider, gateway } = await startOps(t, { env })
      const site = await startHostileSite(t, gateway.opsUrl)
      await (await open({}, t)).goto(site.url)
      await until('the page has tried everything', () => site.told.length > 0)
      t.strictSame(JSON.parse(site.told.join('')), Array(5).fill('unreadable'))
      // Five by script, and the elements of the page.
      const isRefused = async () => (await refusals(gateway, 'fetch_site', 'origin')) >= 12
      await until('all of it was refused', isRefused)
      t.strictSame(provider.requests, [], 'nothing reached the provider')
      t.notOk(gateway.logged.some(({ msg }) => msg === 'cache purged'))
    })
})

t.test('an address that was entered and leads to the ops listener spends nothing', { skip }, async t => {
  const { provider, gateway } = await startOps(t, {})
  const site = await startHostileSite(t, gateway.opsUrl)
  await (await open({}, t)).goto(`${site.url}/redirect`)
  await until('it was refused', async () => (await refusals(gateway, 'browser')) > 0)
  t.strictSame(provider.requests, [])
})
