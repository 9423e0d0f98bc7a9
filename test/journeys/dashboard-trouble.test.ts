// Without it, the dashboard could hide trouble: a closed budget, errors, a full disk, a lost connection.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startNginx, withoutNginx } from '../deploy/nginx.ts'
import { createKey } from '../scenarios/set-up.ts'
import { startBrowser, untilSeen, type WatchedPage, withoutBrowser } from '../support/browser.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { freePort } from '../support/listening.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startCommand } from '../support/process.ts'
import { startProvider, startProviderHere } from '../support/provider.ts'
import { smallDisk, withoutMounts } from '../support/small-disk.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { accessibilityFaults } from './accessibility.ts'
import {
  faultsOf,
  hasten,
  isDrawn,
  isLive,
  isShown,
  largeCells,
  largeDhaka,
  openCell,
  visit,
} from './dashboard-page.ts'

const skip = withoutBrowser
const provider = await startProvider(t)
const open = await startBrowser(t)

t.beforeEach(() => provider.steer({ fault: 'none', reset: true }))

const start = async (t: Test, more: Record<string, string> = {}) => {
  const env = { ...largeCells, ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000', ...more }
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  return { gateway, page: await visit(t, open, gateway) }
}
const elsewhere = '/weather/district/2015'
const token = '0123456789abcdef0123456789abcdef'

t.test('a budget that the provider has closed is the first line, in red', { skip }, async t => {
  const { gateway, page } = await start(t)
  await gateway.get('/weather/district/3026')
  await provider.steer({ fault: 'daily-limit' })
  t.equal((await gateway.get(elsewhere)).status, 500)
  const first = page.locator('#attention li').first()
  await untilSeen('it is told', async () =>
    /^Closed until/.test((await first.innerText()).replace(/^✕\s*/, '')),
  )
  t.equal(await first.getAttribute('class'), 'notice bad')
  const sentence = await first.innerText()
  t.match(sentence, /Closed until 22 Nov, 06:00 \(in 18 h\)/)
  t.match(sentence, /run abohawa budget reopen\s+the provider answered 429: Daily/)
  t.match(await page.locator('#attention').innerText(), /Consumers get errors now/)
  t.match(await page.locator('#budget .gauge').innerText(), /closed until 22 Nov, 06:00/)
  t.equal(await page.locator('#budget .badge.good').count(), 0)
  const part = await page.locator('[data-part=provider]').innerText()
  t.match(part, /closed until 22 Nov, 06:00(.|\n)*First error if it stays down\s+now/)
  t.strictSame(faultsOf(page, gateway), [])
})

t.test('weather from a fallback needs attention, and a cell says that it has it', { skip }, async t => {
  const fallback = await startProviderHere(t)
  const { gateway, page } = await start(t, {
    ABOHAWA_PROVIDER__FALLBACKS: `[{ name: public, baseUrl: "${fallback.url}" }]`,
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '10m',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '10m',
  })
  await provider.steer({ fault: 'reset' })
  t.equal((await gateway.get('/weather/district/3026')).status, 200)
  await untilSeen('it is told', async () =>
    /New weather comes from the fallback public\./.test(await page.locator('#attention').innerText()),
  )
  const part = await page.locator('[data-part=provider]').innerText()
  t.match(part, /Upstream primary\s+open\s+Upstream public\s+in use/)
  await openCell(page, largeDhaka)
  await untilSeen('the cell is open', async () =>
    /Upstream\s+public/.test(await page.locator('#cell').innerText()),
  )
  t.strictSame(faultsOf(page, gateway), [])
})

t.test('an error has its sentence, and its code beside it', { skip }, async t => {
  const { gateway, page } = await start(t)
  await provider.steer({ fault: 'internal-error' })
  t.equal((await gateway.get('/weather/district/3026')).status, 500)
  await isShown(page, largeDhaka, 'failed')
  const part = page.locator('[data-part=provider]')
  await untilSeen('it is the last failure', async () =>
    /answered with a server error/.test(await part.innerText()),
  )
  t.equal(await part.locator('code').innerText(), 'provider_failing')
  t.match(await part.locator('.detail').innerText(), /^the provider answered 500/)
  await openCell(page, largeDhaka)
  const drawer = page.locator('#cell')
  await untilSeen('the cell is open', async () => /with a server error/.test(await drawer.innerText()))
  t.equal(await drawer.locator('code').innerText(), 'provider_failing')
  await drawer.locator('#cell-refresh').click()
  await untilSeen('the failure is told', async () =>
    /Not done: the (provider|circuit)/.test(await page.locator('#cell-result').innerText()),
  )
  const room = await page.evaluate(`(() => {
    const [result, below] = ['#cell-result > :last-child', '#cell-body'].map(each => document.querySelector(each))
    return below.getBoundingClientRect().top - result.getBoundingClientRect().bottom
  })()`)
  t.ok(Number(room) >= 8, `${room} px between the result and the line below`)
})

t.test('the row of an instance has its circuit and the outage that it sees', { skip }, async t => {
  const { gateway, page } = await start(t, {
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '10m',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '10m',
  })
  const row = page.locator('#instances tbody tr')
  t.match(await row.innerText(), /closed(.|\n)*errors in 5 min: 0/)
  await provider.steer({ fault: 'internal-error' })
  for (const id of ['3026', '2015', '1006', '4041', '5081', '6075'])
    await gateway.get(`/weather/district/${id}`)
  await untilSeen('it is shown', async () =>
    /open(.|\n)*Provider out since 12:00/.test(await row.innerText()),
  )
  t.equal(await row.locator('.badge.bad').count(), 2)
  t.strictSame(faultsOf(page, gateway), [])
})

t.test("a store that can't be written needs attention", { skip: skip || withoutMounts }, async t => {
  const disk = await smallDisk(t, 16_000_000)
  const env = await singleGatewayEnv(t, provider.url, { ABOHAWA_STORE__PATH: join(disk.folder, 'store.db') })
  const key = await createKey(env, 'free')
  const { urls } = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const gateway = { opsUrl: urls.ops ?? '' }
  const page = await visit(t, open, gateway)
  const attention = page.locator('#attention')
  disk.fill()
  const use = () => sendRequest(`${urls.api}/api/v1/locations?type=division`, { key })
  await untilSeen('it is told', async () => {
    await use()
    return /Store outage since/.test(await attention.innerText())
  })
  t.equal(await attention.locator('li.bad').count(), 1)
  disk.free()
  await untilSeen('it is over', async () => {
    await use()
    return /Nothing needs attention/.test(await attention.innerText())
  })
  t.strictSame(faultsOf(page, gateway), [])
})

t.test('the token is asked for once, kept in the tab alone, and never in an address', { skip }, async t => {
  const env = { ...largeCells, ABOHAWA_OPS__TOKEN: token }
  const gateway = await startGateway(t, { providerUrl: provider.url, env })

  const page = await open({}, t)
  await hasten(page)
  await page.goto(gateway.opsUrl)
  const dialog = page.locator('#token')
  await untilSeen('the token is asked for', () => dialog.isVisible())
  t.equal(await page.locator('[data-cell]').count(), 0, 'nothing is shown before')
  t.strictSame(await accessibilityFaults(page), [])
  for (let i = 0; i < 3; i += 1) await page.keyboard.press('Escape')
  t.ok(await dialog.isVisible(), 'there is nothing behind it')

  await page.getByRole('textbox', { name: 'Token' }).fill('another-token-that-is-long-enough')
  await page.keyboard.press('Enter')
  await untilSeen('a wrong one is refused', async () => /The token is wrong/.test(await dialog.innerText()))
  t.equal(await page.getByRole('textbox', { name: 'Token' }).getAttribute('aria-invalid'), 'true')
  await page.getByRole('textbox', { name: 'Token' }).fill(token)
  await page.keyboard.press('Enter')
  await isDrawn(page)
  await isLive(page)
  t.notOk(await dialog.isVisible())

  await openCell(page, largeDhaka)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await isShown(page, largeDhaka, 'fresh')

  let isRotated = true
  await page.route(/\/(status|cells|cache\/cell)\b/, route =>
    isRotated ? route.fulfill({ status: 401, json: { error: 'wrong' } }) : route.continue(),
  )
  const askedFor = (part: string) => page.asked.filter(url => url.includes(part)).length
  await untilSeen('the token is asked for', () => dialog.isVisible())
  const ofCell = askedFor('/cache/cell')
  await untilSeen('the drawer meets it too', async () => askedFor('/cache/cell') >= ofCell + 2)
  isRotated = false
  await page.getByRole('textbox', { name: 'Token' }).fill(token)
  await page.keyboard.press('Enter')
  const polls = askedFor('/status')
  await untilSeen('it follows the gateway again', async () => askedFor('/status') > polls)
  t.notOk(await dialog.isVisible())

  await page.reload()
  await isLive(page)
  t.notOk(await dialog.isVisible(), 'kept for the tab')
  t.equal(await page.evaluate('JSON.stringify(localStorage).includes("0123456789")'), false)
  t.equal(await page.evaluate('document.cookie'), '')
  t.notOk(page.asked.some(url => url.includes('0123456789')))

  await page.getByRole('button', { name: 'Forget the token' }).click()
  await untilSeen('the token is asked for again', () => dialog.isVisible())
  // Chromium itself reports each 401 on its console.
  const own = faultsOf(page, gateway).filter(fault => !/status of 401/.test(fault))
  t.strictSame(own, [])
})

t.test('a lost connection is told with its time, and comes back by itself', { skip }, async t => {
  const env = { ...largeCells, ABOHAWA_OPS__PORT: String(await freePort()) }
  const clock = manualClock()
  const first = await startGateway(t, { providerUrl: provider.url, clock, env })
  const page = await visit(t, open, first)
  await first.get('/weather/district/3026')
  await isShown(page, largeDhaka, 'fresh')
  await first.close()
  const lost = page.getByRole('alert').filter({ hasText: 'Connection lost' })
  await untilSeen('the page says so', () => lost.isVisible())
  t.match(await lost.innerText(), /^Connection lost at 12:0\d:\d\d\. .* Reconnecting…$/)
  t.equal(await page.locator('#connection').innerText(), 'Connection lost')
  t.strictSame(await accessibilityFaults(page), [])

  const second = await startGateway(t, { providerUrl: provider.url, clock, env })
  await isLive(page)
  t.notOk(await lost.isVisible())
  t.equal(await page.locator('#announcement').innerText(), 'Connected again.')
  await isShown(page, largeDhaka, 'absent')
  await second.get('/weather/district/3026')
  await isShown(page, largeDhaka, 'fresh')
  const offline = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|503/
  const own = faultsOf(page, second).filter(fault => !offline.test(fault))
  t.strictSame(own, [])
})

t.test('six tabs, as many as a browser has connections, are live and take orders', { skip }, async t => {
  const { gateway, page } = await start(t)
  const { complaints, asked } = page
  const others: WatchedPage[] = []
  for (let more = 0; more < 5; more += 1) {
    const tab = Object.assign(await page.context().newPage(), { complaints, asked })
    others.push(tab)
    await tab.goto(gateway.opsUrl)
    await isLive(tab)
  }
  await openCell(page, largeDhaka)
  await page.getByRole('button', { name: 'Refresh' }).click()
  for (const tab of [page, ...others]) await isShown(tab, largeDhaka, 'fresh')
})

t.test('a hidden tab asks nothing, and shows what is now when it is seen again', { skip }, async t => {
  const { gateway, page } = await start(t)
  const show = (isSeen: boolean) =>
    page.evaluate(`(() => {
      Object.defineProperty(document, 'hidden', { value: ${!isSeen}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    })()`)
  const ended = () => page.evaluate<number>('window.endedWaits')
  await show(false)
  const endedBefore = await ended()
  await gateway.get('/weather/district/3026')
  await untilSeen('the next poll is due', async () => (await ended()) > endedBefore)
  const before = page.asked.length
  await page.evaluate(`dispatchEvent(new Event('online'))`)
  t.equal(page.asked.length, before)
  await show(true)
  await isShown(page, largeDhaka, 'fresh')
})

t.test('where site data is blocked the token holds for as long as the page', { skip }, async t => {
  const env = { ...largeCells, ABOHAWA_OPS__TOKEN: token }
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const page = await open({}, t)
  await page.addInitScript(`for (const name of ['sessionStorage', 'localStorage'])
    Object.defineProperty(window, name, { get: () => { throw new DOMException('denied', 'SecurityError') } })`)
  await page.goto(gateway.opsUrl)
  await page.getByRole('textbox', { name: 'Token' }).fill(token)
  await page.keyboard.press('Enter')
  await isDrawn(page)
  await isLive(page)
  t.notOk(await page.locator('#token').isVisible())
  await page.reload()
  await untilSeen('the token is asked for again', () => page.locator('#token').isVisible())
})

t.test(
  'behind a proxy with a host header of its own the page works',
  { skip: skip || withoutNginx },
  async t => {
    const gateway = await startGateway(t, { providerUrl: provider.url, env: largeCells })
    const port = await freePort()
    const site = `server { listen 127.0.0.1:${port}; access_log off; location / { proxy_pass ${gateway.opsUrl}; } }`
    await startNginx(t, t.testdir(), site, port)
    const page = await visit(t, open, { opsUrl: `http://localhost:${port}` })
    await openCell(page, largeDhaka)
    await page.getByRole('button', { name: 'Refresh' }).click()
    await isShown(page, largeDhaka, 'fresh')
  },
)

t.test('a page whose scripts are refused says so', { skip }, async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url, env: largeCells })
  const page = await open({}, t)
  await page.route('**/main.js', route => route.fulfill({ status: 403 }))
  await page.goto(gateway.opsUrl)
  const told = page.getByText('The scripts of this page did not load.')
  await untilSeen('it is told', () => told.isVisible())
})
