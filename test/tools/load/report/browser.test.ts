// Without it reports could be unreadable on phones, in dark mode, by keyboard or on paper.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { comparePage } from '../../../../tools/load/report/compare-page.ts'
import { differences, leastRuns } from '../../../../tools/load/report/comparison.ts'
import type { ReplayResult } from '../../../../tools/load/report/result.ts'
import { reportPage as reportPageIn } from '../../../../tools/load/report/run-page.ts'
import { whatIfPage } from '../../../../tools/load/what-if/what-if-page.ts'
import { accessibilityFaults } from '../../../journeys/accessibility.ts'
import { withoutBrowser as skip, startBrowser, untilSeen } from '../../../support/browser.ts'
import { drawnRehearsal, drawnReplay, drawnWhatIf } from './drawn-results.ts'

const timeZone = 'Asia/Dhaka'
const reportPage = (results: readonly ReplayResult[]) => reportPageIn(results, timeZone)

const folder = t.testdir({})
const urlOf = (name: string, page: string): string => {
  const path = join(folder, name)
  writeFileSync(path, page)
  return pathToFileURL(path).href
}
// As few steps as a chart can do with: axe-core looks at every cell.
const few = { requests: 2_000, stepSeconds: 21_600 }
const another = { seed: 2, slow: 1.4, hitShare: 0.95 }
const one = drawnRehearsal(few)
const other = drawnRehearsal({ ...few, ...another }, { settings: [] })
// With verdicts.
const compared = Array.from({ length: leastRuns }, (_, seed) => drawnRehearsal({ ...few, seed }))
const comparedWith = compared.map((_, seed) =>
  drawnRehearsal({ ...few, ...another, seed: 9 + seed }, { settings: [] }),
)
const saturated = { ...one.generator, saturated: true, reason: 'its busiest core was 99 % used' }
const bad = drawnReplay({ ...few, failing: 0.01 }, { interrupted: true, generator: saturated })
const comparison = {
  ...{ a: compared, b: comparedWith, differences: differences(compared, comparedWith) },
  warnings: [{ obstacle: 'traffic', a: 'x', b: 'y' }],
  limits: [{ limit: 'p99>+10%', change: 0.4, verdict: 'failed' }],
} as const
const pages = {
  one: urlOf('one.html', reportPage([one])),
  bad: urlOf('bad.html', reportPage([bad])),
  several: urlOf('several.html', reportPage([one, other])),
  comparison: urlOf('comparison.html', comparePage(comparison, timeZone)),
  'what if': urlOf('what-if.html', whatIfPage(drawnWhatIf(['1h', '3h', '6h']), timeZone)),
}
const open = await startBrowser(t)

const looks = [
  [360, 'light'],
  [1280, 'dark'],
  [360, 'dark'],
  [1280, 'light'],
] as const
// Of several whole runs axe-core looks at the first: the others are made of the same parts, and take it as long.
const unlooked = '.whole ~ .whole'
// What these could break in the rest.
const repeatedIds =
  "[...document.querySelectorAll('[id]')].map(({ id }) => id).filter((id, i, all) => all.indexOf(id) < i)"
// One page: the report in it, its size and its theme change.
let opened: ReturnType<typeof open> | undefined
const sharedPage = () => {
  opened ??= open()
  return opened
}
const drawnCharts = { one: 7, bad: 6, several: 20, comparison: 6, 'what if': 4 }
for (const [i, [name, url]] of Object.entries(pages).entries())
  t.test(`${name}: no faults, in light and dark, on phone and desk`, { skip }, async t => {
    const shared = await sharedPage()
    // Each page in two of them, one of them on a phone; all that is looked at is made of the same parts.
    for (const [width, colorScheme] of [0, 1].map(n => looks[(2 * i + n) % looks.length] ?? looks[0])) {
      const where = `${width} ${colorScheme}`
      shared.asked.length = 0
      await shared.setViewportSize({ width, height: 800 })
      await shared.emulateMedia({ colorScheme })
      await shared.goto(url)
      await shared.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
      await untilSeen(`${where}: its charts are drawn`, async () => {
        const drawn = await shared.evaluate("document.querySelectorAll('.plot canvas').length")
        return drawn === drawnCharts[name as keyof typeof drawnCharts]
      })
      const tables =
        "[...document.querySelectorAll('.chart details')].every(each => each.querySelector('td'))"
      await untilSeen(`${where}: tables of its charts`, async () => shared.evaluate(tables))
      const drawnWidth = Number(await shared.evaluate('document.documentElement.scrollWidth'))
      t.ok(drawnWidth <= width, `${where}: not wider`)
      t.strictSame(await shared.evaluate(repeatedIds), [], where)
      await shared.evaluate(`for (const each of document.querySelectorAll('${unlooked}')) each.remove()`)
      t.strictSame(await accessibilityFaults(shared), [], where)
      t.strictSame(shared.complaints, [], where)
      t.strictSame(new Set(shared.asked.filter(asked => !asked.startsWith('data:'))), new Set([url]), where)
    }
  })

t.test('the theme is chosen by keyboard and kept', { skip }, async t => {
  const page = await open({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' }, t)
  await page.goto(pages.one)
  t.equal(await page.title(), 'Rehearsal')
  const ground = () => page.evaluate('getComputedStyle(document.body.parentElement).backgroundColor')
  const light = await ground()
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.className'), 'skip')
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.className'), 'theme')
  await page.locator('select.theme').selectOption('dark')
  t.not(await ground(), light)
  await page.reload()
  t.not(await ground(), light)
})

t.test('a chart shows its values under the pointer and by arrow keys', { skip }, async t => {
  const page = await sharedPage()
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.goto(pages.one)
  const figure = page.locator('figure.chart').first()
  const plot = figure.locator('.plot')
  await figure.locator('summary').click()
  const cells = (row: number) => figure.locator('tbody tr').nth(row).locator('th, td').allTextContents()
  const shown = async () =>
    `${await figure.locator('figcaption').innerText()} ${await figure.locator('.legend').innerText()}`
  await plot.focus()
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowRight')
  const [time = '', ...values] = await cells(1)
  for (const each of [time, ...values]) t.ok((await shown()).includes(each), `${each} in ${await shown()}`)
  t.equal(await plot.getAttribute('aria-valuenow'), '1')
  t.ok((await plot.getAttribute('aria-valuetext'))?.startsWith(`${time}, `))
  await page.keyboard.press('End')
  t.ok((await shown()).includes((await cells(3))[0] ?? 'none'))
  await page.keyboard.press('Escape')
  t.match(await shown(), 'steps of 6 h')
  const box = await plot.locator('.u-over').boundingBox()
  await plot.locator('.u-over').hover({ position: { x: ((box?.width ?? 0) * 2) / 3, y: 50 } })
  const [third = ''] = await cells(2)
  t.ok((await shown()).includes(third), await shown())
})

t.test('without a script all but the charts can be read, and no control is there', { skip }, async t => {
  const page = await open({ javaScriptEnabled: false, viewport: { width: 360, height: 800 } }, t)
  await page.goto(pages.one)
  t.ok(await page.locator('text=All thresholds passed').isVisible())
  t.ok(await page.locator('text=Charts need JavaScript').isVisible())
  t.notOk(await page.locator('.theme').isVisible())
})

t.test('on paper it is light, without controls', { skip }, async t => {
  const shared = await sharedPage()
  await shared.setViewportSize({ width: 800, height: 1000 })
  await shared.emulateMedia({ colorScheme: 'dark' })
  await shared.goto(pages.one)
  const stroke = () => shared.locator('.sample path').first().getAttribute('stroke')
  await untilSeen('charts are drawn', async () => (await stroke()) === 'rgb(109, 184, 234)')
  await shared.emulateMedia({ media: 'print' })
  await untilSeen('and drawn again for paper', async () => (await stroke()) === 'rgb(11, 93, 148)')
  t.notOk(await shared.locator('.theme').isVisible())
  const colour = await shared.evaluate("getComputedStyle(document.querySelector('h1')).color")
  t.match(colour, /^rgb\((\d|[1-4]\d), /)
  t.match(await shared.locator('h1').innerText(), 'Time zone: Asia/Dhaka')
})
