// Without it unpublishing a place could damage the snapshot, or two edits lose one of them.

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { readSnapshot } from '../../../src/catalogue/snapshot-reader.ts'
import { setPublished } from '../../../tools/catalogue/publication.ts'
import { buildSample } from '../../catalogue/sample-places.ts'

t.test('unpublishing changes one line of a valid file, and publishing restores the old bytes', async t => {
  const { path } = await buildSample(t.testdir())
  const former = readFileSync(path, 'utf8')
  const { ino } = statSync(path)
  const location = { id: '1004', name_en: 'Barguna', published: false }
  t.hasStrict(await setPublished(path, '1004', false), { changed: true, location })
  const lines = former.split('\n')
  const changed = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line, at) => line !== lines[at])
  t.match(changed, [/"sha256"/, /"id":"1004",.*"published":false\},$/])
  t.equal(changed.length, 2)
  t.equal((await readSnapshot(path)).locations[1]?.published, false)
  t.not(statSync(path).ino, ino, 'another file, so that nobody reads a half of it')

  t.match(await setPublished(path, '1004', true), { changed: true, location: { published: true } })
  t.equal(readFileSync(path, 'utf8'), former)
})

t.test('the current state, an unknown id and a faulty snapshot leave the file alone', async t => {
  const { path } = await buildSample(t.testdir())
  const former = readFileSync(path)
  const unchanged = { changed: false, location: { id: '1004', published: true } }
  t.hasStrict(await setPublished(path, '1004', true), unchanged)
  await t.rejects(setPublished(path, '99', false), {
    code: 'bad_input',
    message: `the id must be one of the 7 places in ${path}, got "99"`,
  })
  t.ok(readFileSync(path).equals(former))
  t.notOk(existsSync(`${path}.new`))
  const broken = readFileSync(path, 'utf8').replace('"population":892781', '"population":1')
  writeFileSync(path, broken)
  await t.rejects(setPublished(path, '1004', false), { code: 'bad_input', message: /sha256/ })
  t.equal(readFileSync(path, 'utf8'), broken)
})

t.test('a second edit is refused during one, and the message says how to remove a stale lock', async t => {
  const { path } = await buildSample(t.testdir())
  const former = readFileSync(path)
  writeFileSync(`${path}.new`, 'half a fi')
  await t.rejects(setPublished(path, '1004', false), {
    code: 'bad_input',
    message: `${path} is being edited by another process: ${path}.new exists; try again when that is done, or delete that file if no such process runs`,
  })
  await t.rejects(buildSample(path.replace('/locations.json', '')), { code: 'bad_input' })
  t.ok(readFileSync(path).equals(former))
  t.equal(readFileSync(`${path}.new`, 'utf8'), 'half a fi', 'the lock of the other is left alone')
})

t.test('concurrent edits are never lost silently', async t => {
  const { path } = await buildSample(t.testdir())
  const ids = ['10', '1004', '100409', '10040913', '10040915', '20']
  const outcomes = await Promise.allSettled(ids.map(id => setPublished(path, id, false)))
  const done = ids.filter((_, at) => outcomes[at]?.status === 'fulfilled')
  const unpublished = (await readSnapshot(path)).locations.filter(({ published }) => !published)
  t.ok(done.length > 0)
  const hidden = unpublished.map(({ id }) => id)
  t.strictSame(hidden, done)
  for (const outcome of outcomes)
    if (outcome.status === 'rejected')
      t.match(outcome.reason, { code: 'bad_input', message: /is being edited/ })
})
