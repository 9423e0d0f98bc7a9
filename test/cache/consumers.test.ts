// Without it a refusal for one key could fail reads of other keys.

import t, { type Test } from 'tap'
import { ReadThrough } from '../../src/cache/read-through.ts'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { partsOn, textEntry } from './cache-set-up.ts'

const subject = { id: 'a' }

class ShareUsedUp extends Error {
  readonly consumer: string
  constructor(consumer: string) {
    super(`the share of ${consumer} is used up`)
    this.consumer = consumer
  }
}

const setUp = (t: Test) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const loads: (string | undefined)[] = []
  const loadFailures: unknown[] = []
  const held = new Set<string>()
  const usedUp: string[] = []
  /** Whose share a load is for after all, and is used up. */
  const movedTo: string[] = []
  const gate = Promise.withResolvers<void>()
  const { parts, ofProcess, failed, expedited } = partsOn(
    t,
    { store, clock },
    {
      load: async (_subject, _purpose, consumer) => {
        loads.push(consumer)
        await gate.promise
        const refused = movedTo.pop() ?? (consumer === 'greedy' ? consumer : undefined)
        if (refused !== undefined) throw new ShareUsedUp(refused)
        return textEntry({ value: `for ${consumer}`, fetchedAt: clock.now() })
      },
      throttled: consumer =>
        consumer !== undefined && held.has(consumer) ? new ShareUsedUp(consumer) : undefined,
      consumerOf: error => (error instanceof ShareUsedUp ? error.consumer : undefined),
      observer: {
        ...silentObserver,
        onShareUsedUp: purpose => usedUp.push(purpose),
        onLoadFailure: failure => loadFailures.push(failure),
      },
    },
    10_000,
  )
  const { failures } = parts
  const instance = () => new ReadThrough({ ...parts, ...ofProcess(), failures })
  return { clock, loads, usedUp, loadFailures, failed, failures, held, expedited, movedTo, gate, instance }
}

for (const where of ['the same instance', 'another instance'])
  t.test(`in ${where} a reader goes on for itself when the one it joined may not load`, async t => {
    const { loads, usedUp, loadFailures, failed, failures, gate, instance } = setUp(t)
    const here = instance()
    const greedy = here.read(subject, 'greedy')
    if (where === 'another instance') await until('the load has begun', () => loads.length === 1)
    const other = (where === 'another instance' ? instance() : here).read(subject, 'other')
    gate.resolve()
    await t.rejects(Promise.resolve(greedy), new ShareUsedUp('greedy'))
    t.hasStrict(await other, { value: 'for other', outcome: 'miss' })
    t.strictSame([loads, usedUp], [['greedy', 'other'], ['cold']])
    t.strictSame([...failed, ...loadFailures, failures.last('a')], [undefined], 'no failure of the subject')
  })

t.test('all reads of one whose share is used up fail with its load, which no other read repeats', async t => {
  const { loads, usedUp, gate, instance } = setUp(t)
  const cache = instance()
  const reads = Array.from({ length: 20 }, async () => cache.read(subject, 'greedy'))
  gate.resolve()
  for (const read of reads) await t.rejects(read, new ShareUsedUp('greedy'))
  t.strictSame([loads, usedUp], [['greedy'], ['cold']])
})

t.test('who is held back loads nothing, and gets what is there', async t => {
  const { clock, loads, usedUp, held, gate, instance } = setUp(t)
  const cache = instance()
  gate.resolve()
  held.add('other')
  await t.rejects(Promise.resolve(cache.read(subject, 'other')), new ShareUsedUp('other'))
  t.strictSame(loads, [])
  t.hasStrict(await cache.read(subject, 'third'), { value: 'for third' })
  clock.advance(2_000)
  t.hasStrict(await cache.read(subject, 'other'), { value: 'for third', outcome: 'stale', forwarded: false })
  t.strictSame(loads, ['third'])
  t.strictSame(usedUp, ['cold', 'refresh'], 'each counts once')
  t.hasStrict(await cache.read(subject, 'third'), { outcome: 'stale', forwarded: true })
  await until('it is refreshed', async () => (await cache.read(subject, 'other')).outcome === 'hit')
  t.strictSame(loads, ['third', 'third'])
})

t.test('a load that another joins before or after it is queued is expedited for that one', async t => {
  for (const joins of ['before', 'after']) {
    const { loads, expedited, movedTo, gate, instance } = setUp(t)
    const cache = instance()
    const many = cache.read(subject, 'many')
    if (joins === 'after') await until('the load has begun', () => loads.length === 1)
    const few = cache.read(subject, 'few')
    await until('the load has begun', () => loads.length === 1)
    t.strictSame(expedited, ['few'], 'it does not wait behind all that the first one wants')
    // It may become that one’s, and fails nobody then.
    movedTo.push('few')
    gate.resolve()
    t.hasStrict(await few, { value: 'for many', collapsed: true })
    t.hasStrict(await many, { value: 'for many', outcome: 'miss' })
    t.strictSame(loads, ['many', 'many'])
  }
})
