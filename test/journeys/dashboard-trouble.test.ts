// The dashboard in trouble, in a real browser: a budget that is closed, purges while nothing can be loaded, errors with a
// sentence in both languages, a full disk. What it shows of a healthy gateway is in dashboard.test.ts.

import { join } from 'node:path'
import type { BrowserContextOptions } from 'playwright-core'
import t, { type Test } from 'tap'
import { startBrowser, untilSeen, withoutBrowser } from '../support/browser.ts'
import {
  faultsOf,
  isShown,
  largeCells,
  largeDhaka,
  latinTexts,
  openCell,
  statusEveryMs,
  visit,
} from '../support/dashboard-page.ts'
import { manualClock } from '../support/manual-clock.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'
import { smallDisk, withoutMounts } from '../support/small-disk.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'

const skip = withoutBrowser
const provider = await startProvider(t)
const open = skip ? undefined : await startBrowser(t)

const start = async (t: Test, options: BrowserContextOptions = {}) => {
  await provider.steer({ fault: 'none', reset: true })
  const clock = manualClock()
  const env = { ...largeCells, ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000' }
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env, statusEveryMs })
  const page = await visit(t, open, gateway, options)
  return { clock, gateway, page }
}
const elsewhere = '/weather/district/2015'

t.test('a budget that the provider has closed is the first line, in red', { skip }, async t => {
  const { gateway, page } = await start(t)
  await gateway.get('/weather/district/3026')
  await provider.steer({ fault: 'daily-limit' })
  t.equal((await gateway.get(elsewhere)).status, 500)
  const first = page.locator('#attention li').first()
  await untilSeen('it is told', async () =>
    /^Closed until/.test((await first.innerText()).replace(/^✕\s*/, '')),
  )
  t.equal(await first.getAttribute('class'), 'bad')
  const sentence = await first.innerText()
  t.match(sentence, /Closed until 22 Nov, 06:00 \(in 18 h\)/)
  t.match(sentence, /end it with abohawa budget reopen\s+the provider answered 429: Daily/)
  t.match(await page.locator('#attention').innerText(), /Consumers get errors now/)
  t.match(await page.locator('#budget .gauge').innerText(), /closed until 22 Nov, 06:00/)
  t.equal(await page.locator('#budget .gauge.good').count(), 0)
  t.match(await page.locator('[data-part=provider]').innerText(), /closed until 22 Nov, 06:00/)
  t.match(await page.locator('[data-part=provider]').innerText(), /First error without it\s+at once/)
  t.strictSame(faultsOf(page, gateway), [])
})

t.test('while nothing can be loaded a purge leaves all weather, which is served', { skip }, async t => {
  const { gateway, page } = await start(t)
  await gateway.get('/weather/district/3026')
  await provider.steer({ fault: 'daily-limit' })
  t.equal((await gateway.get(elsewhere)).status, 500)
  await isShown(page, largeDhaka, 'fresh')
  await page.getByRole('button', { name: 'Purge all…' }).click()
  await page.locator('#purge-question').getByRole('button', { name: 'Purge all' }).click()
  await isShown(page, largeDhaka, 'stale')
  t.equal((await gateway.get('/weather/district/3026')).status, 200)
  t.strictSame(faultsOf(page, gateway), [])
})

t.test('all timelines in memory are counted, also those of cells that failed', { skip }, async t => {
  const { gateway, clock, page } = await start(t)
  for (const place of ['3026', '2015', '3033']) await gateway.get(`/weather/district/${place}`)
  clock.advance(90 * 60_000)
  await provider.steer({ fault: 'internal-error' })
  await gateway.get('/weather/district/3026')
  await isShown(page, largeDhaka, 'failed')
  await page.getByRole('button', { name: 'Purge all…' }).click()
  t.match(await page.locator('#purge-text').innerText(), /Timelines in memory here: 3\./)
})

t.test('an error has its sentence in Bengali, and its code beside it', { skip }, async t => {
  const { gateway, page } = await start(t, { locale: 'bn-BD' })
  await provider.steer({ fault: 'internal-error' })
  t.equal((await gateway.get('/weather/district/3026')).status, 500)
  await isShown(page, largeDhaka, 'failed')
  const part = page.locator('[data-part=provider]')
  await untilSeen('it is the last failure', async () => /সার্ভারে ত্রুটি/.test(await part.innerText()))
  t.equal(await part.locator('code').innerText(), 'provider_failing')
  t.match(await part.locator('[lang=en]').innerText(), /^the provider answered 500/)
  await openCell(page, largeDhaka)
  const drawer = page.locator('#cell')
  await untilSeen('the cell is open', async () => /সরবরাহকারীর সার্ভারে ত্রুটি/.test(await drawer.innerText()))
  t.equal(await drawer.locator('code').innerText(), 'provider_failing')
  await drawer.locator('#cell-refresh').click()
  await untilSeen('the failure is told', async () =>
    /করা যায়নি: সরবরাহকারী/.test(await page.locator('#cell-result').innerText()),
  )
  const room = await page
    .locator('#cell-result')
    .evaluate(
      `(at => at.parentElement.querySelector('#cell-body').getBoundingClientRect().top - at.lastElementChild.getBoundingClientRect().bottom)(document.querySelector('#cell-result'))`,
    )
  t.ok(Number(room) >= 8, `${room} px between the result and the line below`)
  const latin = (await latinTexts(page)).filter(text => !/^p[০-৯]+$/.test(text.trim()) && !/°C/.test(text))
  t.strictSame(latin, [])
})

t.test('a store that can not be written needs attention', { skip: skip || withoutMounts }, async t => {
  const disk = await smallDisk(t, 16_000_000)
  const env = {
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_STORE__PATH: join(disk.folder, 'store.db'),
    ABOHAWA_PROVIDER__BASE_URL: provider.url,
  }
  const create = ['keys', 'create', '--create-store', '--subscriber', 'A', '--tier', 'free', '--json']
  const made = await runCommand(create, env)
  const { key } = JSON.parse(made.stdout)
  const { urls } = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const gateway = { opsUrl: urls.ops ?? '' }
  const page = await visit(t, open, gateway)
  const attention = page.locator('#attention')
  disk.fill()
  const use = () => sendRequest(`${urls.api}/api/v1/locations?type=division`, { key })
  await untilSeen('it is told', async () => {
    await use()
    return /The store can not be written, counts are kept in its reserve: .*(full|space)/.test(
      await attention.innerText(),
    )
  })
  t.equal(await attention.locator('li.bad').count(), 1)
  disk.free()
  await untilSeen('it is over', async () => {
    await use()
    return /Nothing needs attention/.test(await attention.innerText())
  })
  t.strictSame(faultsOf(page, gateway), [])
})
