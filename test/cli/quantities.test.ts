// Durations of several parts and rates with a unit are understood by every command that takes them.

import { join } from 'node:path'
import t from 'tap'
import { runCommands } from '../support/printed.ts'

t.test('2h20m and 90/m are written alike in all commands', async t => {
  const none = join(t.testdir(), 'none.ndjson')
  const out = ['--out', join(t.testdirName, 'out.ndjson')]
  const target = ['--target', 'http://127.0.0.1:9']
  // Each is read before the file, which is missing.
  const lines = [
    ['replay', none, ...target, '--rate', '90/m', '--duration', '2h20m', '--warm-up', '1m30s'],
    ['whatif', none, '--warm-up', '2h20m', '--latency', '1s500ms'],
    ['whatif', none, '--case', 'cache.freshness=age cache.freshFor=2h20m'],
    ['rehearse', none, '--step', '1s500ms'],
    ['traffic', 'import', none, '--from', '2h20m', '--duration', '1h30m', ...out],
    ['traffic', 'import', none, '--longest-gap', '1h30m', ...out],
  ]
  const ended = await runCommands(lines)
  for (const [i, line] of lines.entries()) {
    t.equal(ended[i]?.code, 1, line.join(' '))
    t.match(ended[i]?.stderr, /none\.ndjson/)
  }
  const given = ['--rate', '90/m', '--duration', '1m20s', '--storm', 'district/2022@00:00/1m10s']
  const [generated] = await runCommands([['traffic', 'generate', ...given, '--arrivals', 'even']])
  t.equal(generated?.code, 0)
  t.ok((generated?.stdout.split('\n').length ?? 0) > 100)
})
