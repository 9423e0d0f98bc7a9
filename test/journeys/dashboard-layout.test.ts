// Without it, the dashboard could cut or cover content on some screens, or fail its readers with assistive technology.

import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { startBrowser, untilSeen, withoutBrowser } from '../support/browser.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { startGateway } from '../support/start-gateway.ts'
import { foundWithin, patienceMs } from '../support/until.ts'
import { wholeCatalogue } from '../support/usual-catalogue.ts'
import { accessibilityFaults, colourRules } from './accessibility.ts'
import {
  coldCache,
  dhaka,
  faultsOf,
  isDrawn,
  isLive,
  isShown,
  largeCells,
  largeDhaka,
  openCell,
  visit,
} from './dashboard-page.ts'

const skip = withoutBrowser
const sizes = ['1366x768', '1440x900', '1920x1080', '1100x800', '390x844']
const token = '0123456789abcdef0123456789abcdef'

const provider = await startProvider(t)
const open = await startBrowser(t)

t.test('nothing covers, cuts or breaks anything', { skip }, async t => {
  const redis = await testRedis(t)
  const start = (staleFor: string) =>
    startGateway(t, {
      providerUrl: provider.url,
      // Its heartbeats go on.
      clock: systemClock,
      env: {
        ...coldCache,
        ...redis.env,
        ABOHAWA_OPS__TOKEN: token,
        ABOHAWA_CACHE__STALE_FOR: staleFor,
        // Every cell of the map has weather.
        ABOHAWA_CATALOGUE__PATH: wholeCatalogue,
        // Large numbers, which need room.
        ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000000',
        ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '1000000',
        ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '100000',
      },
    })
  const gateway = await start('12h')
  await start('8h')
  await gateway.get('/weather/district/3026')
  for (let i = 0; i < 93; i += 1)
    await gateway.get('/locations?type=division', { key: gateway.keys.free ?? '' })

  const page = await open({ viewport: { width: 1366, height: 768 } }, t)
  await page.goto(gateway.opsUrl)
  await page.locator('#token-value').fill(token)
  await page.locator('#token-form button').click()
  await isDrawn(page)
  await isLive(page)
  const rows = page.locator('#instances tbody tr')
  await untilSeen('the fleet is known', async () => (await rows.count()) === 2)
  await page.evaluate('document.fonts.ready.then(() => {})')
  // Charts follow a new size a moment later.
  const settled = async (): Promise<unknown> => {
    let found: unknown[] = []
    const isSettled = async () => {
      found = await page.evaluate(faults)
      return found.length === 0
    }
    await foundWithin(patienceMs, isSettled, 50)
    return found
  }
  for (const isOpen of [false, true]) {
    if (isOpen) await page.locator('#table summary').click()
    for (const size of sizes) {
      const [width = 0, height = 0] = size.split('x').map(Number)
      await page.setViewportSize({ width, height })
      const where = `${size}${isOpen ? ' with the table' : ''}`
      await page.evaluate('scrollTo(0, 0)')
      t.strictSame(await settled(), [], where)
      await page.evaluate('scrollTo(0, document.body.scrollHeight)')
      t.strictSame(await settled(), [], `${where}, at the end`)
    }
  }

  const other = rows.filter({ hasText: 'differs' })
  t.equal(await other.count(), 1)
  const id = await other.locator('code').first().innerText()
  t.match(await page.locator('#attention').innerText(), new RegExp(`a different configuration: ${id}$`, 'm'))
  t.notMatch(await rows.filter({ hasText: 'this one' }).innerText(), id)

  await openCell(page, dhaka)
  const places = page.locator('#cell .places li')
  await untilSeen('the cell is open', async () => (await places.count()) > 0)
  t.equal(await places.count(), 10)
  const more = page.locator('#more-places')
  const left = Number(/\d+/.exec(await more.innerText())?.[0])
  await more.click()
  t.equal(await places.count(), 10 + left)
  t.notOk(await more.isVisible())
})

t.test('charts are light on paper, and colours differ where the system forces its own', { skip }, async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url, env: largeCells, clock: manualClock() })
  const page = await visit(t, open, gateway, { colorScheme: 'light' })
  t.match(await page.locator('main').innerText(), /Time zone: Asia\/Dhaka/)
  const drawn = () => page.evaluate<string>("document.querySelector('#charts canvas').toDataURL()")
  const light = await drawn()
  await page.emulateMedia({ colorScheme: 'dark' })
  await untilSeen('they are dark', async () => (await drawn()) !== light)
  await page.emulateMedia({ media: 'print' })
  await untilSeen('they are light again', async () => (await drawn()) === light)
  await page.emulateMedia({ media: 'screen', forcedColors: 'active' })
  const colours = await page.evaluate<string[]>(`import('./src/common/page/preferences.js')
    .then(({ colourOf }) => ['--area-1', '--area-2', '--area-3', '--line-1', '--line-2', '--line-3'].map(colourOf))`)
  t.equal(new Set(colours).size, 6, colours.join())
})

t.test('axe-core finds nothing, in either theme and size', { skip }, async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url, env: largeCells, clock: manualClock() })
  await gateway.get('/weather/district/3026')
  for (const width of [1440, 390])
    await t.test(`${width} pixels wide`, async t => {
      const page = await visit(t, open, gateway, {
        colorScheme: 'light',
        viewport: { width, height: 844 },
        reducedMotion: 'reduce',
      })
      await isShown(page, largeDhaka, 'fresh')
      const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
      const look = async (what: string) => {
        t.strictSame(await accessibilityFaults(page), [], `${what}, light`)
        const fits = await page.evaluate('document.documentElement.scrollWidth <= innerWidth')
        t.ok(fits, 'nothing beyond the edge')
        const light = await ground()
        await page.emulateMedia({ colorScheme: 'dark' })
        t.not(await ground(), light)
        t.strictSame(await accessibilityFaults(page, colourRules), [], `${what}, dark`)
        await page.emulateMedia({ colorScheme: 'light' })
      }
      await look('the page')
      await page.locator('#table summary').click()
      await page.locator('#search').fill('dhaka')
      const found = page.locator('#found').getByRole('option')
      await untilSeen('places are found', async () => (await found.count()) > 0)
      // Rows are alike: one is enough.
      await page.locator('#table-state').selectOption('fresh')
      t.equal(await page.locator('#table-rows tr').count(), 1)
      await look('with the table and the list of places')
      // What was looked at is not looked at again; the list of places stays.
      await page.evaluate("document.querySelector('#table').open = false")
      await page.evaluate(`(() => {
        const field = document.querySelector('#search')
        field.value = 'sylhet'
        field.dispatchEvent(new InputEvent('input', { bubbles: true }))
        field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))
      })()`)
      const texts = async () => (await found.allInnerTexts()).join()
      await untilSeen('the new text is searched, and nothing of the former one opened', async () =>
        /Sylhet/.test(await texts()),
      )
      await page.locator('#search').fill('dhaka')
      await untilSeen('the former text is searched again', async () => /Dhaka/.test(await texts()))
      await page.locator('#search').press('Enter')
      await untilSeen('the cell is read', () => page.locator('#cell .badge').first().isVisible())
      await look('with a cell')
      await page.keyboard.press('Escape')
      await page.locator('#purge-all').click()
      await look('with the question')
      t.strictSame(faultsOf(page, gateway), [])
    })
})

/** What covers, cuts or breaks something, as sentences. */
const faults = `(() => {
  const found = []
  const box = at => at.getBoundingClientRect()
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1
  const bar = box(document.querySelector('header.bar'))
  const map = document.querySelector('.country')
  for (const panel of document.querySelectorAll('.lists .panel, .side > *'))
    if (overlap(box(map), box(panel))) found.push('the map covers ' + panel.innerText.slice(0, 30))
  if (getComputedStyle(map).position === 'sticky' && parseFloat(getComputedStyle(map).top) < bar.height)
    found.push('the bar cuts the map')
  if (innerWidth < 1000 && document.body.scrollWidth > innerWidth) found.push('wider than the screen')
  if (innerWidth > 1000) {
    const controls = [...document.querySelectorAll('.controls > :not([hidden])')].map(box)
    if (controls.some(each => each.top > controls[0].bottom)) found.push('the bar has two rows')
  }
  for (const scroll of document.querySelectorAll('.lists .scroll'))
    if (innerWidth > 1000 && scroll.scrollWidth > scroll.clientWidth) found.push('cut at the right: ' + scroll.innerText.slice(0, 60))
  const height = at => {
    const range = document.createRange()
    range.selectNodeContents(at)
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top / 8))).size
  }
  for (const value of document.querySelectorAll('#budget-facts dd, .gauge > b, .parts .facts dd, #tiles dd, .figures em'))
    if (value.childElementCount === 0 && !/\\s/.test(value.textContent) && height(value) > 1) found.push('broken: ' + value.textContent)
  for (const chart of document.querySelectorAll('.chart')) {
    const [over, wrap] = ['.u-over', '.u-wrap'].map(name => chart.querySelector(name))
    // Half of a time of day as it is drawn, 11 px high.
    if (!over || box(wrap).right - box(over).right < 16) found.push('the end of a chart has no room')
  }
  for (const em of document.querySelectorAll('.figures em')) if (height(em) > 1) found.push('broken: ' + em.textContent)
  return found
})()`
