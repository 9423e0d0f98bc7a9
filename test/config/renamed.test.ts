// Renamed settings: the former name, in a file or as a variable, is refused with the current one.

import t from 'tap'
import { variableOf } from '../../src/config/environment.ts'
import { renamedSettings } from '../../src/config/renamed.ts'
import { printPath, settings } from '../../src/config/tree.ts'
import { faultsOfTexts } from './load-text.ts'

const known = new Set(settings.map(({ path }) => printPath(path)))
const inYaml = (path: string): string => {
  const keys = path.split('.')
  return keys.map((key, depth) => `${'  '.repeat(depth)}${key}:`).join('\n')
}

t.test('every former name is unknown, every present one known, and the table sorted', async t => {
  for (const [former, present] of Object.entries(renamedSettings)) {
    t.notOk(known.has(former), former)
    t.ok(known.has(present), present)
  }
  t.strictSame(Object.keys(renamedSettings), Object.keys(renamedSettings).toSorted())
})

t.test('a former name in a file is refused with the present one', async t => {
  for (const [former, present] of Object.entries(renamedSettings)) {
    const [fault = '', ...others] = faultsOfTexts(t, { files: [`${inYaml(former)} 1\n`] })
    const place = fault.slice(0, fault.indexOf(` ${former}`))
    t.match(place, /^one\.yaml:\d+:\d+:$/)
    t.equal(fault, `${place} ${former} is now called ${present}; use that name`)
    t.strictSame(others, [])
  }
})

t.test('a former variable is refused with the present one', async t => {
  for (const [former, present] of Object.entries(renamedSettings)) {
    const [before, now] = [former, present].map(path => variableOf(path.split('.'))) as [string, string]
    t.strictSame(faultsOfTexts(t, { env: { [before]: '1' } }), [
      `${before}: this variable is now called ${now}; use that name`,
    ])
  }
})
