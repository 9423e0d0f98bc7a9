// What axe-core finds on a page in a real browser, each finding with the elements that it is found in.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { WatchedPage } from '../support/browser.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The rules of axe-core that a theme, which changes nothing but colours, can break. */
export const colourRules: readonly string[] = ['color-contrast', 'link-in-text-block']

/**
 * The rules that a language can break at one width and not at another, by texts that need more room. All other rules look at
 * what a width or a language changes by itself, so that each width and each language once is enough for them.
 */
export const roomRules: readonly string[] = ['scrollable-region-focusable']

/** @param rules by their names; without any, all that axe-core runs by default */
export const accessibilityFaults = async (
  page: WatchedPage,
  rules: readonly string[] = [],
): Promise<string[]> => {
  if (!(await page.evaluate('!!globalThis.axe'))) await page.evaluate(axe)
  const options = JSON.stringify({
    resultTypes: ['violations'],
    ...(rules.length > 0 ? { runOnly: rules } : {}),
  })
  return page.evaluate(`axe.run(document, ${options}).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, any }) => html + ' ' + (any[0]?.message ?? '')).join(' | ')))`)
}
