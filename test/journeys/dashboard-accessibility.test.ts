// What axe-core finds on the dashboard, in either theme and language, on a desk and on a phone, with everything that opens.

import t from 'tap'
import { accessibilityFaults, colourRules } from '../support/accessibility.ts'
import { startBrowser, untilSeen, withoutBrowser } from '../support/browser.ts'
import { coldCache, dhaka, faultsOf, isShown, visit } from '../support/dashboard-page.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { startGateway } from '../support/start-gateway.ts'

const skip = withoutBrowser
const provider = await startProvider(t)
const open = skip ? undefined : await startBrowser(t)

t.test(
  'axe-core finds nothing, in either theme and language, on a desk and on a phone',
  { skip },
  async t => {
    const gateway = await startGateway(t, { providerUrl: provider.url, env: coldCache, clock: manualClock() })
    await gateway.get('/weather/district/3026')
    for (const locale of ['en-GB', 'bn-BD'])
      for (const width of [1440, 390])
        await t.test(`${locale}, ${width} pixels wide`, async t => {
          const page = await visit(t, open, gateway, {
            locale,
            colorScheme: 'light',
            viewport: { width, height: 844 },
            reducedMotion: 'reduce',
          })
          await isShown(page, dhaka, 'fresh')
          const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
          const look = async (what: string) => {
            t.strictSame(await accessibilityFaults(page), [], `${what}, light`)
            const light = await ground()
            await page.emulateMedia({ colorScheme: 'dark' })
            t.not(await ground(), light)
            t.strictSame(await accessibilityFaults(page, colourRules), [], `${what}, dark`)
            t.ok(
              await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
              'nothing beyond the edge',
            )
            await page.emulateMedia({ colorScheme: 'light' })
          }
          await look('the page')
          await page.locator('#table summary').click()
          await page.locator('#search').fill('dhaka')
          await untilSeen('places are found', async () => (await page.getByRole('option').count()) > 0)
          await look('with the table and the list of places')
          await page.locator('#search').press('Enter')
          await untilSeen('the cell is read', () => page.locator('#cell .state').first().isVisible())
          await look('with a cell')
          await page.keyboard.press('Escape')
          await page.locator('#purge-all').click()
          await look('with the question')
          t.strictSame(faultsOf(page, gateway), [])
        })
  },
)
