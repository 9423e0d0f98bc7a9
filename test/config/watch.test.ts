// Without this, a changed config file could go unnoticed, or be read half written.

import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { watchFiles } from '../../src/config/watch.ts'
import { until } from '../support/until.ts'

/** A watch that polls only when it is asked to, and how often it told a change and that nothing is new. */
const openWatch = (t: Test, files: readonly string[], pollMs: number | null = null) => {
  const told = { changes: 0, quiet: 0 }
  const count = (what: keyof typeof told) => async () => {
    told[what] += 1
  }
  const watch = watchFiles({
    ...{ files: () => files, pollMs },
    ...{ onChange: count('changes'), onQuiet: count('quiet') },
  })
  t.teardown(watch.close)
  return { watch, told }
}

const watching = async (t: Test, files: readonly string[]) => {
  const { watch, told } = openWatch(t, files)
  /** Polls until a change must have been seen. */
  const poll = async () => {
    await watch.poll()
    await watch.poll()
    return told.changes
  }
  t.equal(await poll(), 1, 'the first content is told, so that what changed during a start is not missed')
  return { watch, told: () => told.changes, poll }
}

t.test('new content is told once, after two looks at which it was the same', async t => {
  const file = join(t.testdir({ a: 'one' }), 'a')
  const { watch, told } = await watching(t, [file])
  writeFileSync(file, 'tw')
  await watch.poll()
  t.equal(told(), 1, 'it may be half written')
  writeFileSync(file, 'two')
  await watch.poll()
  t.equal(told(), 1, 'as it was')
  await watch.poll()
  t.equal(told(), 2)
  await watch.poll()
  await watch.poll()
  t.equal(told(), 2)
})

t.test('a file that is only touched, or written as it was, is no change', async t => {
  const folder = t.testdir({ a: 'one', b: 'two' })
  const file = join(folder, 'a')
  const { poll } = await watching(t, [file])
  utimesSync(file, 1, 1)
  t.equal(await poll(), 1)
  writeFileSync(file, 'one')
  t.equal(await poll(), 1)
  renameSync(join(folder, 'b'), file)
  t.equal(await poll(), 2, 'but one that is renamed into its place is, as editors do it')
})

t.test('a link to a folder that is swapped is a change, as Kubernetes does it', async t => {
  const folder = t.testdir({ '..one': { 'a.yaml': 'one' }, '..two': { 'a.yaml': 'two' } })
  symlinkSync('..one', join(folder, '..data'))
  symlinkSync('..data/a.yaml', join(folder, 'a.yaml'))
  const { poll } = await watching(t, [join(folder, 'a.yaml')])
  symlinkSync('..two', join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  t.equal(await poll(), 2)
  rmSync(join(folder, '..one'), { recursive: true })
  t.equal(await poll(), 2)
})

t.test('a file that is gone is a change, and so is its return', async t => {
  const folder = t.testdir({ a: 'one', b: 'b' })
  const { poll } = await watching(t, [join(folder, 'a'), join(folder, 'b')])
  rmSync(join(folder, 'a'))
  t.equal(await poll(), 2)
  t.equal(await poll(), 2)
  mkdirSync(join(folder, 'a'))
  t.equal(await poll(), 2, 'a folder can be read no better')
  rmSync(join(folder, 'a'), { recursive: true })
  writeFileSync(join(folder, 'a'), 'one')
  t.equal(await poll(), 3)
})

t.test('it looks at an interval, and no more after its end', async t => {
  const file = join(t.testdir({ a: 'one' }), 'a')
  const { watch, told } = openWatch(t, [file], 2)
  await until('the first content is told', () => told.changes === 1)
  writeFileSync(file, 'two')
  await until('the change is told', () => told.changes === 2)
  watch.close()
  writeFileSync(file, 'three')
  await watch.poll()
  await watch.poll()
  t.equal(told.changes, 2, 'nothing is told after its end')
})

t.test('what was refused can be tried again, at every fifth poll that finds nothing new', async t => {
  const file = join(t.testdir({ a: 'one' }), 'a')
  const { watch, told } = openWatch(t, [file])
  for (let i = 0; i < 2; i++) await watch.poll()
  t.strictSame(told, { changes: 1, quiet: 0 })
  for (let i = 0; i < 10; i++) await watch.poll()
  t.strictSame(told, { changes: 1, quiet: 2 })
})

t.test('the files are read one at a time, whoever asks', async t => {
  let under = 0
  let most = 0
  const watch = watchFiles({
    files: () => [],
    pollMs: null,
    onChange: async () => {
      under += 1
      most = Math.max(most, under)
      await new Promise(resolve => setImmediate(resolve))
      under -= 1
      return most
    },
  })
  t.teardown(watch.close)
  await Promise.all([watch.poll(), watch.readNow(), watch.poll(), watch.readNow()])
  t.equal(most, 1)
})
