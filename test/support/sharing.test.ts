// Test files that share a process: each is in one, and nothing of one is left when the next begins.

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { cleanEnv } from './process.ts'
import { allFiles, quickFiles } from './quick-files.ts'
import { sharedProcesses } from './shared-processes.ts'

t.test('every test file is in one process, and no other is', async t => {
  t.strictSame(sharedProcesses(false).flat().sort(), allFiles())
  t.strictSame(sharedProcesses(true).flat().sort(), quickFiles())
  for (const files of sharedProcesses(false))
    if (files.includes('test/deploy/nginx.test.ts')) t.equal(files.length, 1, 'it may end its process')
})

// Sets up, tears down and keeps files for itself, and is named where it fails.
t.test('apart', async t => {
  const file = (name: string) => `import t from 'tap'
    t.before(() => console.log('# ${name} is set up'))
    t.teardown(() => console.log('# ${name} is torn down'))
    console.log('# folder ' + t.testdir().split('/').at(-1))
    t.test('in ${name}', async t => t.equal('${name}', 'first'))\n`
  const folder = t.testdir({
    'first.test.mjs': file('first'),
    'second.test.mjs': file('second'),
    'both.test.mjs': `import { runTogether } from '${join(import.meta.dirname, 'sharing.ts')}'
      await runTogether(import.meta.url, ['./first.test.mjs', './second.test.mjs'])`,
  })
  const ended = promisify(execFile)(process.execPath, [join(folder, 'both.test.mjs')], {
    env: cleanEnv({ TAP: '1' }),
  })
  const { code, stdout }: { code?: number; stdout: string } = await ended.catch(error => error)
  t.equal(code, 1)
  const seen = stdout.split('\n').filter(line => /^# (?!Subtest|time|failed)/.test(line))
  const folders = seen.filter(line => line.startsWith('# folder'))
  t.equal(new Set(folders).size, 2)
  t.strictSame(
    seen.filter(line => !folders.includes(line)),
    ['# first is set up', '# first is torn down', '# second is set up', '# second is torn down'],
  )
  t.match(stdout, /^ok 1 - .*first\.test\.mjs # time/m)
  t.match(stdout, /^ {8}not ok 1 - should be equal$/m)
  t.match(stdout, /^not ok 2 - .*second\.test\.mjs # time/m)
})
