// What axe-core finds on the dashboard, in either theme and language, on a desk and on a phone, with everything that opens.

import t from 'tap'
import { accessibilityFaults, colourRules, roomRules } from '../support/accessibility.ts'
import { startBrowser, untilSeen, withoutBrowser } from '../support/browser.ts'
import { faultsOf, isShown, largeCells, largeDhaka, visit } from '../support/dashboard-page.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { startGateway } from '../support/start-gateway.ts'

const skip = withoutBrowser
const provider = await startProvider(t)
const open = skip ? undefined : await startBrowser(t)

t.test('axe-core finds nothing, in either theme, language and size', { skip }, async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: largeCells,
    clock: manualClock(),
  })
  await gateway.get('/weather/district/3026')
  for (const [locale, width, rules] of [
    ['en-GB', 1440, undefined],
    ['bn-BD', 390, undefined],
    ['en-GB', 390, roomRules],
    ['bn-BD', 1440, roomRules],
  ] as const)
    await t.test(`${locale}, ${width} pixels wide`, async t => {
      const page = await visit(t, open, gateway, {
        locale,
        colorScheme: 'light',
        viewport: { width, height: 844 },
        reducedMotion: 'reduce',
      })
      await isShown(page, largeDhaka, 'fresh')
      const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
      const look = async (what: string) => {
        t.strictSame(await accessibilityFaults(page, rules), [], `${what}, light`)
        t.ok(
          await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
          'nothing beyond the edge',
        )
        if (rules) return
        const light = await ground()
        await page.emulateMedia({ colorScheme: 'dark' })
        t.not(await ground(), light)
        t.strictSame(await accessibilityFaults(page, colourRules), [], `${what}, dark`)
        await page.emulateMedia({ colorScheme: 'light' })
      }
      await look('the page')
      await page.locator('#table summary').click()
      await page.locator('#search').fill('dhaka')
      await untilSeen(
        'places are found',
        async () => (await page.locator('#found').getByRole('option').count()) > 0,
      )
      const rows = page.locator('#table-rows tr')
      await untilSeen('the table is written', async () => (await rows.count()) > 0)
      // Rows of a state are alike: ten and the fresh one are enough.
      await page.evaluate(
        "for (const each of document.querySelectorAll('#table-rows tr:nth-child(n+11):not([data-state=fresh])')) each.remove()",
      )
      t.ok((await rows.count()) >= 10)
      t.equal(await page.locator('#table-rows [data-state=fresh]').count(), 1)
      await look('with the table and the list of places')
      // What was looked at is not looked at again; the list of places stays.
      await page.evaluate("document.querySelector('#table').open = false")
      await page.locator('#search').press('Enter')
      await untilSeen('the cell is read', () => page.locator('#cell .state').first().isVisible())
      await look('with a cell')
      await page.keyboard.press('Escape')
      await page.locator('#purge-all').click()
      await look('with the question')
      t.strictSame(faultsOf(page, gateway), [])
    })
})
