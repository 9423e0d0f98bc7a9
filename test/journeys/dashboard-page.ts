// The dashboard as a test sees it: opens the page of a gateway and reads what is shown. What runs in the browser is text, since
// tests are checked without the types of a browser.

import type { BrowserContextOptions } from 'playwright-core'
import { type OpenPage, untilSeen, type WatchedPage } from '../support/browser.ts'
import { sendRequest, type TestGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'

/** Lets the page's waits, and so the time between two of its polls, pass eight times as fast, and counts those that ended. */
export const hasten = (page: WatchedPage) =>
  page.addInitScript(`(() => {
    const wait = setTimeout
    window.endedWaits = 0
    window.setTimeout = (run, ms, ...given) =>
      wait(() => {
        run(...given)
        window.endedWaits += 1
      }, ms / 8)
  })()`)

/** Of cells without anything cached, whose entries turn stale after an hour and by age alone. */
export const coldCache = {
  ABOHAWA_CACHE__FRESH_FOR: '1h',
  ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0',
  ABOHAWA_TEST_CACHE__WARM_FOR: '0s',
  ABOHAWA_CACHE__FRESHNESS: 'age',
}

/** The cell of Dhaka, district 3026. */
export const dhaka = '23.7,90.4'

/** As `coldCache`, with a fifth of the cells: what is not about single cells is drawn, and looked at by axe-core, in less time. */
export const largeCells = { ...coldCache, ABOHAWA_CACHE__CELL_DEGREES: '0.25' }

/** The cell of Dhaka among large ones. */
export const largeDhaka = '23.75,90.5'

export const isLive = (page: WatchedPage): Promise<true> =>
  untilSeen('the page is live', () => page.locator('#connection[data-state=live]').isVisible())

export const isDrawn = (page: WatchedPage) =>
  untilSeen('all cells are on the map', async () => (await page.locator('[data-cell]').count()) > 50)

/** Opens the page until the end of a test, and waits for its data. */
export const visit = async (
  t: Teardown,
  open: OpenPage,
  gateway: Pick<TestGateway, 'opsUrl'>,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> => {
  const page = await open(options, t)
  await hasten(page)
  await page.goto(gateway.opsUrl)
  await isDrawn(page)
  await isLive(page)
  return page
}

/** The state that the map shows of each cell, by its look. */
export const statesShown = (page: WatchedPage): Promise<Record<string, string>> =>
  page.evaluate(
    `Object.fromEntries([...document.querySelectorAll('#map [data-cell]')].map(box => [box.dataset.cell, box.classList[1]]))`,
  )

export const statesHeld = async ({ opsUrl }: TestGateway): Promise<Record<string, string>> => {
  const { body } = await sendRequest(`${opsUrl}/cells`)
  return Object.fromEntries(body.cells.map(({ id, state }: { id: string; state: string }) => [id, state]))
}

export const isShown = (page: WatchedPage, cell: string, state: string) =>
  untilSeen(
    `the map shows ${cell} ${state}`,
    async () =>
      (await page.evaluate(`document.querySelector('#map [data-cell="${cell}"]').classList[1]`)) === state,
  )

/** The id of what has the focus. */
export const focused = (page: WatchedPage): Promise<string> => page.evaluate('document.activeElement.id')

/** Presses on a cell of the map, once it stands still and lies there: other panels move it, as the table does when it opens. */
export const openCell = (page: WatchedPage, cell: string) => page.locator(`[data-cell="${cell}"]`).click()

/** How many cells are met by walking every row with the arrow keys, up from where the walk is and down again. */
export const cellsOnAWalk = (page: WatchedPage): Promise<number> =>
  page.evaluate(`(() => {
    const map = document.querySelector('#map')
    const seen = new Set()
    const step = key => {
      map.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
      seen.add(map.dataset.chosen)
    }
    for (const direction of [...Array(70).fill('ArrowUp'), ...Array(70).fill('ArrowDown')]) {
      for (const key of ['ArrowLeft', 'ArrowRight']) for (let i = 0; i < 60; i += 1) step(key)
      step(direction)
    }
    return seen.size
  })()`)

/** What was amiss in the browser, and what was asked elsewhere than at this gateway. */
export const faultsOf = (
  { complaints, asked }: WatchedPage,
  { opsUrl }: Pick<TestGateway, 'opsUrl'>,
): string[] => [...complaints, ...asked.filter(url => !url.startsWith(`${opsUrl}/`))]
