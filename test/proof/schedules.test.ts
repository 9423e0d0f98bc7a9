// Without it schedules could lack a kind of fault, or the checker share code with what it checks.

import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { knownAfterRealMs } from '../../proof/checker/facts.ts'
import { heardAfterRealMs } from '../../proof/events.ts'
import { sabotagedSource } from '../../proof/sabotage/plant.ts'
import { sabotages } from '../../proof/sabotage/sabotages.ts'
import { scheduleOf } from '../../proof/schedule.ts'
import { shrink } from '../../proof/shrink.ts'
import { stalledAtMostMs } from '../../proof/undisturbed.ts'

const root = new URL('../../', import.meta.url).pathname

t.test('a seed gives the same schedule each time, and another seed another one', async t => {
  t.strictSame(scheduleOf(7), scheduleOf(7))
  t.notSame(scheduleOf(7).steps, scheduleOf(8).steps)
})

t.test('every kind of store, protocol and step comes in some hundred schedules', async t => {
  const schedules = Array.from({ length: 300 }, (_, seed) => scheduleOf(seed))
  const stores = new Set(schedules.map(({ store }) => store))
  t.strictSame(stores, new Set(['redis', 'sentinel', 'cluster', 'embedded']))
  t.strictSame(new Set(schedules.map(({ protocol }) => protocol)), new Set(['http', 'https', 'http2']))
  const steps = `load move to-midnight link provider-link store provider heal empty restart-store fail-over catalogue
    certificate drop-messages stop kill start suspend issue revoke rotate tier configure purge run`
  t.strictSame(
    new Set(schedules.flatMap(({ steps }) => steps.map(step => step.do))),
    new Set(steps.split(/\s+/)),
  )
})

t.test('the checker knows nothing of the product, the simulator and their tests', async t => {
  const files = globSync('proof/checker/**/*.ts', { cwd: root })
  t.ok(files.length > 5)
  for (const file of files) {
    const source = readFileSync(`${root}${file}`, 'utf8')
    const imported = [...source.matchAll(/from '([^']+)'/g)].map(([, from = '']) => from)
    for (const from of imported)
      t.match(from, /^(?:\.{1,2}\/[a-z-]+\.ts|node:\w+)$/, `${file} imports ${from}`)
  }
})

t.test('each planted fault changes one text of the product', async t => {
  for (const sabotage of sabotages) {
    const { name, file, replacement } = sabotage
    t.not(sabotagedSource(sabotage), readFileSync(`${root}${file}`, 'utf8'), name)
    t.ok(sabotagedSource(sabotage).includes(replacement), name)
  }
  const [first] = sabotages
  if (first) t.throws(() => sabotagedSource({ ...first, text: 'no such text' }), /0 times/)
})

t.test('a schedule that breaks a promise is shrunk to the steps that break it', async t => {
  const failing = scheduleOf(3)
  const purges = (steps: typeof failing.steps): number => steps.filter(step => step.do === 'move').length
  const smallest = await shrink(failing, async ({ steps }) => purges(steps) > 0)
  t.ok(failing.steps.length > 1)
  t.equal(smallest.steps.length, 1)
  t.equal(purges(smallest.steps), 1)
})

t.test('requests after a change of a key come when the checker demands that it is known', async t => {
  t.ok(heardAfterRealMs > knownAfterRealMs + stalledAtMostMs)
})
