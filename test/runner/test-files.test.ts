// Without it a file of tests could be in no process, and be run by nobody.

import t from 'tap'
import { allFiles, sharedProcesses } from './test-files.ts'

t.test('every test file is in one process, and no other is', async t => {
  const processes = sharedProcesses(false)
  t.strictSame(processes.flat().sort(), allFiles())
  const measuring = processes.find(files => files.includes('test/weather/timeline.test.ts'))
  t.equal(measuring?.length, 1, 'it measures its memory')
  const quick = sharedProcesses(true).flat()
  t.ok(quick.includes('test/keys/key-form.test.ts') && !quick.includes('test/journeys/clock.test.ts'))
})
