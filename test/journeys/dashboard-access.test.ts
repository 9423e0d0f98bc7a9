// The dashboard beyond its figures: the token that it asks for, a connection that is lost and comes back, and a stream too many.

import t from 'tap'
import { accessibilityFaults } from '../support/accessibility.ts'
import { startBrowser, untilSeen, withoutBrowser } from '../support/browser.ts'
import {
  faultsOf,
  isDrawn,
  isLive,
  isShown,
  largeCells,
  largeDhaka,
  openCell,
  statusEveryMs,
  visit,
} from '../support/dashboard-page.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { freePort } from '../support/redis-server.ts'
import { startGateway } from '../support/start-gateway.ts'

const skip = withoutBrowser
const provider = await startProvider(t)
const open = skip ? undefined : await startBrowser(t)
const token = '0123456789abcdef0123456789abcdef'

t.test('the token is asked for once, kept in the tab alone, and never in an address', { skip }, async t => {
  if (!open) return
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ...largeCells, ABOHAWA_OPS__TOKEN: token },
    statusEveryMs,
  })
  const page = await open({}, t)
  await page.goto(gateway.opsUrl)
  const dialog = page.locator('#token')
  await untilSeen('the token is asked for', () => dialog.isVisible())
  t.equal(await page.locator('[data-cell]').count(), 0, 'nothing is shown before')
  t.strictSame(await accessibilityFaults(page), [])
  await page.keyboard.press('Escape')
  t.ok(await dialog.isVisible(), 'there is nothing behind it')

  await page.getByRole('textbox', { name: 'Token' }).fill('another-token-that-is-long-enough')
  await page.keyboard.press('Enter')
  await untilSeen('a wrong one is refused', async () => /refused this token/.test(await dialog.innerText()))
  t.equal(await page.getByRole('textbox', { name: 'Token' }).getAttribute('aria-invalid'), 'true')
  await page.getByRole('textbox', { name: 'Token' }).fill(token)
  await page.keyboard.press('Enter')
  await isDrawn(page)
  await isLive(page)
  t.notOk(await dialog.isVisible())

  await openCell(page, largeDhaka)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await isShown(page, largeDhaka, 'fresh')
  await page.reload()
  await isLive(page)
  t.notOk(await dialog.isVisible(), 'kept for the tab')
  t.equal(await page.evaluate('JSON.stringify(localStorage).includes("0123456789")'), false)
  t.equal(await page.evaluate('document.cookie'), '')
  t.notOk(page.asked.some(url => url.includes('0123456789')))

  await page.getByRole('button', { name: 'Forget the token' }).click()
  await untilSeen('the token is asked for again', () => dialog.isVisible())
  // Chromium itself reports each 401 on its console.
  t.strictSame(
    faultsOf(page, gateway).filter(fault => !/status of 401/.test(fault)),
    [],
  )
})

t.test('a lost connection is told with its time, and comes back by itself', { skip }, async t => {
  const env = { ...largeCells, ABOHAWA_OPS__PORT: String(await freePort()) }
  const clock = manualClock()
  const first = await startGateway(t, { providerUrl: provider.url, clock, env, statusEveryMs })
  const page = await visit(t, open, first)
  await first.get('/weather/district/3026')
  await isShown(page, largeDhaka, 'fresh')
  await first.close()
  const lost = page.getByRole('alert').filter({ hasText: 'Connection lost' })
  await untilSeen('the page says so', () => lost.isVisible())
  t.match(await lost.innerText(), /^Connection lost at \d\d:\d\d:\d\d\. .* Trying again by itself\.$/)
  t.equal(await page.locator('#connection').innerText(), 'Connection lost')
  t.strictSame(await accessibilityFaults(page), [])

  const second = await startGateway(t, { providerUrl: provider.url, clock, env, statusEveryMs })
  await isLive(page)
  t.notOk(await lost.isVisible())
  t.equal(await page.locator('#announcement').innerText(), 'Connected again.')
  await isShown(page, largeDhaka, 'absent')
  await second.get('/weather/district/3026')
  await isShown(page, largeDhaka, 'fresh')
  t.strictSame(
    faultsOf(page, second).filter(fault => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|503/.test(fault)),
    [],
  )
})

t.test('where there are too many streams the figures of now are shown, and the reason', { skip }, async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ...largeCells, ABOHAWA_TEST_OPS__MAX_CONNECTIONS: '16' },
  })
  const streams = new AbortController()
  t.teardown(() => streams.abort())
  const opened = await Promise.all(
    Array.from({ length: 8 }, () => fetch(`${gateway.opsUrl}/events`, { signal: streams.signal })),
  )
  t.strictSame(new Set(opened.map(({ status }) => status)), new Set([200]))
  if (!open) return
  const page = await open({}, t)
  await page.goto(gateway.opsUrl)
  await isDrawn(page)
  const lost = page.getByRole('alert').filter({ hasText: 'there are 8 streams already' })
  await untilSeen('the reason is shown', () => lost.isVisible())
  streams.abort()
  await isLive(page)
  t.notOk(await lost.isVisible())
})
