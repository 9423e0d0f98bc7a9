// Without it a failed write could destroy the old file, or replace one that appeared meanwhile.

import { promises } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { writeBeside } from '../../src/common/write-beside.ts'

// As on a memory card.
promises.link = () => Promise.reject(new Error('EPERM: there are no hard links here'))
syncBuiltinESMExports()

const text = 'new'

t.test('a file comes under its name, in place of another one by force alone', async t => {
  const folder = t.testdir({ old: 'old' })
  const write = (name: string, force: boolean) =>
    writeBeside(join(folder, name), { mode: 0o600, force }, (_, handle) => handle.writeFile(text))
  await write('free', false)
  t.equal(await readFile(join(folder, 'free'), 'utf8'), text)
  await t.rejects(write('old', false), { code: 'EEXIST' })
  t.equal(await readFile(join(folder, 'old'), 'utf8'), 'old')
  await write('old', true)
  t.equal(await readFile(join(folder, 'old'), 'utf8'), text)
  t.strictSame((await readdir(folder)).sort(), ['free', 'old'], 'nothing is left beside')
})

t.test('one that appears while it is written stays, and a writing that fails leaves nothing', async t => {
  const folder = t.testdir({})
  const path = join(folder, 'file')
  const options = { mode: 0o600, force: false }
  await t.rejects(
    writeBeside(path, options, () => Promise.reject(new Error('no room'))),
    /no room/,
  )
  t.strictSame(await readdir(folder), [])
  await t.rejects(
    writeBeside(path, options, () => writeFile(path, 'of another')),
    { code: 'EEXIST' },
  )
  t.equal(await readFile(path, 'utf8'), 'of another')
  t.strictSame(await readdir(folder), ['file'])
})
