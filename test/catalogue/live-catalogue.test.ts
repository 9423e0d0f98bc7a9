// Without this, a changed catalogue file could be missed, or a faulty one replace a good one.

import { spawn } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { type CatalogueChange, openCatalogue } from '../../src/catalogue/live-catalogue.ts'
import type { InputError } from '../../src/common/errors.ts'
import { setPublished } from '../../tools/catalogue/publication.ts'
import { outputOf, withoutPrlimit } from '../support/process.ts'
import { patienceMs, until } from '../support/until.ts'
import { buildSample } from './sample-places.ts'

const never = 3_600_000

/** A listener that collects values and lets a test wait for the next one. */
const listening = <T>() => {
  const received: T[] = []
  let waiting = Promise.withResolvers<T>()
  const listener = (value: T) => {
    received.push(value)
    waiting.resolve(value)
    waiting = Promise.withResolvers()
  }
  return { received, listener, next: () => waiting.promise }
}

const startSample = async (test: Test, { pollMs = 5, at = (path: string) => path } = {}) => {
  const { path } = await buildSample(test.testdir())
  const [changes, faults] = [listening<CatalogueChange>(), listening<InputError>()]
  const listeners = { onChange: changes.listener, onFault: faults.listener }
  const live = await openCatalogue({ path: at(path), pollMs, ...listeners })
  // Watching a file does not keep a process alive, so a timer must while a test waits for a change.
  const waiting = setInterval(() => {}, never)
  test.teardown(() => {
    live.close()
    clearInterval(waiting)
  })
  return { path, live, changes, faults }
}

t.test('a file with a fault is not opened', async t => {
  const { path } = await buildSample(t.testdir())
  writeFileSync(path, '{')
  await t.rejects(openCatalogue({ path, pollMs: never }), { code: 'bad_input', message: /not JSON/ })
  rmSync(path)
  await t.rejects(openCatalogue({ path, pollMs: never }), { code: 'bad_input', message: /ENOENT/ })
})

t.test('a new file that could not be read is read with a later poll', { skip: withoutPrlimit }, async t => {
  const { path, live, changes, faults } = await startSample(t)
  const limit = ['--pid', String(process.pid), '--nofile']
  const former = await outputOf(t, ['prlimit', ...limit, '--output=SOFT', '--noheadings'])
  // Fewer than are open, so that no file can be opened; a process can't be started then either, so one waits for its turn.
  const { pid } = process
  const script = `read _; prlimit --pid ${pid} --nofile=3:; read _; prlimit --pid ${pid} --nofile=${former.trim()}:`
  const limiter = spawn('sh', ['-c', script], { stdio: ['pipe', 'ignore', 'inherit'] })
  const ended = new Promise(resolve => limiter.once('exit', resolve))
  const next = `${path}.next`
  writeFileSync(next, readFileSync(path))
  await setPublished(next, '1004', false)
  const [fault, change] = [faults.next(), changes.next()]
  limiter.stdin.write('\n')
  await until('no file can be opened', () => {
    try {
      closeSync(openSync(path, 'r'))
      return false
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EMFILE'
    }
  })
  renameSync(next, path)
  t.match((await fault).message, /EMFILE/)
  // Another version, which can't be read either.
  const { mtimeMs } = statSync(path)
  utimesSync(path, mtimeMs / 1_000, mtimeMs / 1_000 + 1)
  await t.rejects(live.reload(), /EMFILE/)
  t.ok(live.current.find('district', '1004'), 'the former one stays')
  limiter.stdin.end('\n')
  await ended
  await change
  t.equal(live.current.find('district', '1004'), undefined)
  t.equal(live.fault(), undefined)
  t.equal(faults.received.length, 1, 'one fault for both versions')
})

t.test('swaps are noticed, a catalogue in use stays complete, and a reload waits for no poll', async t => {
  const { path, live, changes } = await startSample(t)
  for (const published of [false, true, false]) {
    const [former, next] = [live.current, changes.next()]
    await setPublished(path, '20', published)
    const change = await next
    const sums = { checksum: live.current.checksum, formerChecksum: former.checksum }
    t.strictSame(change, { size: published ? 7 : 6, ...sums })
    t.equal(live.current.find('division', '20') !== undefined, published)
    t.equal(former.find('division', '20') === undefined, published)
  }
  t.equal(changes.received.length, 3)
  const lazy = await startSample(t, { pollMs: never })
  await setPublished(lazy.path, '20', false)
  t.ok(lazy.live.current.find('division', '20'))
  await lazy.live.reload()
  t.equal(lazy.live.current.find('division', '20'), undefined)
  t.equal(lazy.changes.received.length, 1)
})

t.test('a faulty file never replaces a good catalogue, and is reported once', async t => {
  const { path, live, changes, faults } = await startSample(t)
  const good = readFileSync(path, 'utf8')
  const [former, nextFault] = [live.current, faults.next()]
  writeFileSync(`${path}.bad`, good.replace('"population":892781', '"population":-1'))
  renameSync(`${path}.bad`, path)
  t.match((await nextFault).message, /locations\[1\] \(id 1004\), population: must be .*, got -1/)
  t.equal(live.current, former)
  t.match(live.fault()?.message, /population/)

  // Two explicit reloads of the same faulty file, and further ones by the timer meanwhile.
  await t.rejects(live.reload(), { code: 'bad_input' })
  await t.rejects(live.reload(), { code: 'bad_input' })
  t.equal(faults.received.length, 1)

  const otherFault = faults.next()
  rmSync(path)
  t.match((await otherFault).message, /ENOENT/)
  t.equal(live.current, former)

  writeFileSync(`${path}.good`, good)
  renameSync(`${path}.good`, path)
  await live.reload()
  t.equal(live.fault(), undefined)
  t.equal(live.current.checksum, former.checksum)
  t.equal(faults.received.length, 2)
  t.equal(changes.received.length, 0, 'the same places again are no change')
})

t.test('a folder swapped behind a link is followed, as mounted configuration does it', async t => {
  const linked = (path: string) => {
    const folder = dirname(path)
    for (const name of ['one', 'two']) mkdirSync(join(folder, name))
    for (const name of ['one', 'two']) writeFileSync(join(folder, name, 'locations.json'), readFileSync(path))
    symlinkSync('one', join(folder, 'data'))
    return join(folder, 'data', 'locations.json')
  }
  const { path, live, changes } = await startSample(t, { at: linked })
  const folder = dirname(path)
  await setPublished(join(folder, 'two', 'locations.json'), '20', false)
  t.equal(changes.received.length, 0)
  const next = changes.next()
  symlinkSync('two', join(folder, 'data.next'))
  renameSync(join(folder, 'data.next'), join(folder, 'data'))
  t.match(await next, { size: 6 })
  t.equal(live.current.find('division', '20'), undefined)
})

t.test('after close nothing is swapped or reported', async t => {
  const { path, live, changes, faults } = await startSample(t, { pollMs: never })
  live.close()
  await setPublished(path, '20', false)
  await live.reload()
  writeFileSync(path, '{')
  await live.reload()
  t.ok(live.current.find('division', '20'))
  t.strictSame([changes.received.length, faults.received.length], [0, 0])
})

t.test('watching a file does not keep a process alive', async t => {
  const { path } = await buildSample(t.testdir())
  const program = `
    const { openCatalogue } = await import(${JSON.stringify(new URL('../../src/catalogue/live-catalogue.ts', import.meta.url).href)})
    const live = await openCatalogue({ path: ${JSON.stringify(path)}, pollMs: 20 })
    console.log(live.current.size)
  `
  const words = [process.execPath, '--input-type=module', '-e', program]
  const stdout = await outputOf(t, words, { timeout: patienceMs })
  t.equal(stdout.trim(), '7')
})

t.test('a file with other bounds or another title is refused until a restart', async t => {
  const { path, live } = await startSample(t, { pollMs: never })
  const text = readFileSync(path, 'utf8')
  for (const changed of [
    text.replace('"north": 27', '"north": 28'),
    text.replace('"title": "Sample"', '"title": "Other"'),
  ]) {
    t.not(changed, text)
    writeFileSync(path, changed)
    await t.rejects(live.reload(), { code: 'bad_input', message: /another title or other bounds .* restart/ })
    t.hasStrict(live.current, { title: 'Sample', bounds: { north: 27 } })
  }
  const { provenance } = JSON.parse(text)
  const bounds = Object.fromEntries(Object.entries(provenance.bounds).toReversed())
  const turned = text.replace(/"bounds": \{[^}]*\}/, `"bounds": ${JSON.stringify(bounds)}`)
  t.not(turned, text)
  for (const same of [text, turned]) {
    writeFileSync(path, same)
    await live.reload()
    t.equal(live.fault(), undefined, 'the order of the bounds says nothing')
  }
})
