// What axe-core finds on a page in a real browser, each finding with the elements that it is found in.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { WatchedPage } from './browser.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const accessibilityFaults = async (page: WatchedPage): Promise<string[]> => {
  await page.evaluate(axe)
  return page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, any }) => html + ' ' + (any[0]?.message ?? '')).join(' | ')))`)
}
