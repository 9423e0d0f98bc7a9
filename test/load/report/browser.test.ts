// Reports in a real browser, opened as files: light and dark, English and Bengali, phone and desk, by keyboard; nothing is
// wider than the screen, nothing is loaded, and axe-core finds no fault.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { comparePage } from '../../../src/load/report/compare-page.ts'
import { differences } from '../../../src/load/report/comparison.ts'
import { leastSteps } from '../../../src/load/report/intervals.ts'
import { reportPage as reportPageIn } from '../../../src/load/report/page.ts'
import type { ReplayResult } from '../../../src/load/report/result.ts'
import { accessibilityFaults } from '../../support/accessibility.ts'
import { withoutBrowser as skip, startBrowser } from '../../support/browser.ts'
import { drawnRehearsal, drawnReplay } from '../../support/replay-results.ts'

const timeZone = 'Asia/Dhaka'
const reportPage = (results: readonly ReplayResult[]) => reportPageIn(results, timeZone)

const folder = t.testdir({})
const urlOf = (name: string, page: string): string => {
  const path = join(folder, name)
  writeFileSync(path, page)
  return pathToFileURL(path).href
}
// As few steps as a chart can do with: axe-core looks at every cell. Comparisons need more of them.
const few = { requests: 2_000, stepSeconds: 21_600 }
const enough = { ...few, stepSeconds: 86_400 / leastSteps }
const another = { seed: 2, slow: 1.4, hitShare: 0.95 }
const one = drawnRehearsal(few)
const other = drawnRehearsal({ ...few, ...another }, { settings: [] })
const compared = [drawnRehearsal(enough)]
const comparedWith = [drawnRehearsal({ ...enough, ...another }, { settings: [] })]
const saturated = { ...one.generator, saturated: true, reason: 'its busiest core was 99 % used' }
const pages = {
  one: urlOf('one.html', reportPage([one])),
  bad: urlOf(
    'bad.html',
    reportPage([drawnReplay({ ...few, failing: 0.01 }, { interrupted: true, generator: saturated })]),
  ),
  several: urlOf('several.html', reportPage([one, other])),
  comparison: urlOf(
    'comparison.html',
    comparePage(
      {
        a: compared,
        b: comparedWith,
        warnings: [{ obstacle: 'traffic', a: 'x', b: 'y' }],
        differences: differences(compared, comparedWith),
        limits: [{ limit: 'p99>+10%', change: 0.4, verdict: 'failed' }],
        bodies: { paths: 3, same: 3, different: 0, missingInA: 0, missingInB: 0, examples: [] },
      },
      timeZone,
    ),
  ),
}
const open = skip ? undefined : await startBrowser(t)

const looks = [
  [360, 'light', 'bn-BD'],
  [1280, 'dark', 'en-GB'],
  [360, 'dark', 'en-GB'],
  [1280, 'light', 'bn-BD'],
  [360, 'dark', 'bn-BD'],
  [1280, 'light', 'en-GB'],
  [360, 'light', 'en-GB'],
  [1280, 'dark', 'bn-BD'],
] as const
// axe-core takes as long for what it can't see as for the rest: the version in the other language, which is looked at in its
// turn, and of several whole runs all but the first, which is made of the same parts.
const unlooked = '.version[hidden], .whole ~ .whole'
// What these could break in the rest.
const repeatedIds =
  "[...document.querySelectorAll('[id]')].map(({ id }) => id).filter((id, i, all) => all.indexOf(id) < i)"
// One page for each language; the report in it, its size and its theme change.
const shared = open && { 'en-GB': await open({ locale: 'en-GB' }), 'bn-BD': await open({ locale: 'bn-BD' }) }
for (const [i, [name, url]] of Object.entries(pages).entries())
  t.test(`${name}: no faults, in light and dark, both languages, phone and desk`, { skip }, async t => {
    // Each page in two of them, one of them on a phone; all that is looked at is made of the same parts.
    for (const [width, colorScheme, locale] of looks.slice(2 * i, 2 * i + 2)) {
      const where = `${width} ${colorScheme} ${locale}`
      const page = shared?.[locale]
      if (!page) return
      page.asked.length = 0
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      await page.goto(url)
      await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
      t.ok(
        Number(await page.evaluate('document.documentElement.scrollWidth')) <= width,
        `${where}: not wider`,
      )
      t.equal(await page.evaluate('document.documentElement.lang'), locale.slice(0, 2))
      t.strictSame(await page.evaluate(repeatedIds), [], where)
      await page.evaluate(`for (const each of document.querySelectorAll('${unlooked}')) each.remove()`)
      t.strictSame(await accessibilityFaults(page), [], where)
      t.strictSame(page.complaints, [], where)
      t.strictSame(new Set(page.asked.filter(asked => !asked.startsWith('data:'))), new Set([url]), where)
    }
  })

t.test('language and theme are chosen by keyboard and kept', { skip }, async t => {
  const page = await open?.({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' }, t)
  if (!page) return
  await page.goto(pages.one)
  t.equal(await page.title(), 'Rehearsal')
  const ground = () => page.evaluate('getComputedStyle(document.body.parentElement).backgroundColor')
  const light = await ground()
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.className'), 'skip')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  t.equal(await page.title(), 'মহড়া')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'English')
  await page.locator('.version:not([hidden]) select.theme').selectOption('dark')
  t.not(await ground(), light)
  await page.reload()
  t.equal(await page.title(), 'মহড়া')
  t.not(await ground(), light)
})

t.test('a chart shows its values under the pointer and by arrow keys', { skip }, async t => {
  const page = shared?.['en-GB']
  if (!page) return
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.goto(pages.one)
  const figure = page.locator('.version:not([hidden]) figure.chart').first()
  const plot = figure.locator('.plot')
  const cells = (row: number) => figure.locator('tbody tr').nth(row).locator('th, td').allTextContents()
  await plot.focus()
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowRight')
  const [time = '', ...values] = await cells(1)
  const tip = await figure.locator('.tip').innerText()
  for (const each of [time, ...values]) t.ok(tip.includes(each), `${each} in ${tip}`)
  t.equal(await plot.getAttribute('aria-valuenow'), '1')
  t.ok((await plot.getAttribute('aria-valuetext'))?.startsWith(`${time}, `))
  await page.keyboard.press('End')
  t.ok((await figure.locator('.tip').innerText()).includes((await cells(3))[0] ?? 'none'))
  await page.keyboard.press('Escape')
  t.notOk(await figure.locator('.tip').isVisible())
  const box = await plot.boundingBox()
  await plot.hover({ position: { x: ((box?.width ?? 0) * 2) / 3, y: 50 } })
  const [third = ''] = await cells(2)
  t.ok((await figure.locator('.tip').innerText()).includes(third))
})

t.test(
  'without a script all of it can be read, and nothing is there that does not work',
  { skip },
  async t => {
    const page = await open?.({ javaScriptEnabled: false, viewport: { width: 360, height: 800 } }, t)
    if (!page) return
    await page.goto(pages.one)
    t.ok(await page.locator('text=All thresholds passed').isVisible())
    t.notOk(await page.locator('button.language').first().isVisible())
    t.equal(await page.locator('.version[lang="bn"]').isVisible(), false)
  },
)

t.test('on paper it is light, without controls', { skip }, async t => {
  const page = shared?.['en-GB']
  if (!page) return
  await page.setViewportSize({ width: 800, height: 1000 })
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.goto(pages.one)
  await page.emulateMedia({ media: 'print' })
  t.notOk(await page.locator('.version:not([hidden]) .controls').isVisible())
  t.match(await page.evaluate("getComputedStyle(document.querySelector('h1')).color"), /^rgb\((\d|[1-4]\d), /)
})
