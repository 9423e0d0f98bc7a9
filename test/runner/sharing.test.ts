// Without it a program that is missing could end the tests of other files unseen.

import { join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/process.ts'

const pathOf = (name: string): string => JSON.stringify(new URL(name, import.meta.url).pathname)

t.test('a file without its program is skipped, alone and beside others', async t => {
  const skipping = `import t from 'tap'
import { skipFileIf } from ${pathOf('../support/skip-file.ts')}
skipFileIf(t, 'needs a mill')
t.fail()`
  const together = `import { runTogether } from ${pathOf('sharing.ts')}
await runTogether(import.meta.url, ['./skipping.mjs', './other.mjs'])`
  const folder = t.testdir({
    'skipping.mjs': skipping,
    'other.mjs': "import t from 'tap'\nt.pass('it ran')",
    'together.mjs': together,
  })
  const outputOf = async (file: string) => {
    const { code, stdout } = await runProgram(t, [process.execPath, join(folder, file)])
    t.equal(code, 0, stdout)
    return stdout
  }
  t.match(await outputOf('skipping.mjs'), /^1\.\.0 # needs a mill$/m)
  const shared = await outputOf('together.mjs')
  t.match(shared, /^ +1\.\.0 # needs a mill$/m)
  t.match(shared, /^ +ok 1 - it ran$/m)
})
