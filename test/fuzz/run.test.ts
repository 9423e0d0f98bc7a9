// Without it a fuzzed case could not be repeated from its seed, or a fault be printed unreadably.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { readCommandLine, UsageError } from '../../fuzz/command-line.ts'
import { Fault } from '../../fuzz/fault.ts'
import { writeReport } from '../../fuzz/summary.ts'
import { createLogWatch } from '../../fuzz/system/log-watch.ts'
import { targetNames } from '../../fuzz/target.ts'
import { targets } from '../../fuzz/targets/all.ts'
import { runProgram } from '../support/process.ts'

for (const { name, batches, kindOf, print } of targets)
  t.test(
    `${name}: a seed gives the same cases each time, of many kinds, and another seed others`,
    async t => {
      const casesOf = (seed: number) => fc.sample(batches, { seed, numRuns: 12, unbiased: true }).flat()
      const printed = (seed: number) => casesOf(seed).map(print)
      const [first, again, other] = [printed(7), printed(7), printed(8)]
      t.ok(isDeepStrictEqual(first, again))
      t.notOk(isDeepStrictEqual(first, other))
      t.ok(new Set(casesOf(7).map(kindOf)).size >= 6)
    },
  )

t.test('a fault is printed as plain ASCII, and short', async t => {
  t.equal(new Fault('x', 'a\r\n\x1b[2Jঢ\x00').detail, 'a\\r\\n\\x1b[2J\\u{9a2}\\x00')
  t.match(new Fault('x', 'y'.repeat(1_000)).detail, /^y{300}\.\.\. \(1000 characters\)$/)
})

t.test('the log is watched for keys in any spelling and for lines that are none', async t => {
  const secret = 'A'.repeat(38)
  const ruleOf = (...texts: string[]) => {
    const watch = createLogWatch(secret)
    for (const text of texts) watch.add(Buffer.from(text))
    try {
      watch.check()
      return undefined
    } catch (fault) {
      t.notMatch((fault as Fault).message, secret)
      return (fault as Fault).rule
    }
  }
  t.equal(ruleOf('{"msg":"fine","url":"/x?key=svc_live_…"}\n', '{"ms', 'g":1}\n'), undefined)
  for (const url of [`svc_live_${secret}`, `svc%5Flive%5f${secret}`, secret, `%2541${secret.slice(1)}`])
    t.equal(ruleOf(`{"url":"/x?key=${url}"}\n`), 'the log holds a key', url)
  for (const line of ['hello', '[]', '{"a":1}{"b":2}', ''])
    t.equal(ruleOf(`${line}\n`), 'a line of the log is not one JSON object', line)
  t.equal(ruleOf(`{"a":"${'x'.repeat(70_000)}"}\n`), 'a line of the log is too long')
})

t.test('a command line is read, or refused in a sentence', async t => {
  t.hasStrict(readCommandLine([]), { seed: 1, seconds: 60, only: targetNames, path: undefined, json: false })
  t.hasStrict(readCommandLine(['--seed', '7', '--only', 'sockets,traffic', '--seconds', '5']), {
    seed: 7,
    only: ['sockets', 'traffic'],
  })
  t.hasStrict(readCommandLine(['--only', 'sockets', '--case', '5:0:1']), { path: '5:0:1' })
  t.type(readCommandLine(['--seed', 'random'])?.seed, 'number')
  t.equal(readCommandLine(['--help']), undefined)
  const refused: [string[], RegExp][] = [
    [['--seed', 'x'], /^--seed must be an integer from 0 to 4294967295, got "x"$/],
    [['--seconds', '0'], /^--seconds must be an integer from 1 to 1000000, got "0"$/],
    [['--only', 'socket'], /^--only must be some of sockets, streams, .*, got "socket"$/],
    [['--case', '5'], /^--case needs one target/],
    [['--only', 'sockets', '--case', '9-5'], /^--case must be numbers .*, got "9-5"$/],
    [['--what'], /--what/],
  ]
  for (const [args, sentence] of refused)
    t.throws(() => readCommandLine(args), { name: 'UsageError', message: sentence }, args.join(' '))
})

t.test('a report is written between its markers, and nowhere else', async t => {
  const file = join(t.testdir(), 'page.md')
  await writeFile(file, '# Page\n\n<!-- fuzz: begin -->\nbefore\n<!-- fuzz: end -->\n\nThe rest.\n')
  await writeReport(file, 7, [], 'limited')
  const page = await readFile(file, 'utf8')
  t.match(
    page,
    /^# Page\n\n<!-- fuzz: begin -->\n\n0 cases[\s\S]*seed 7[\s\S]*<!-- fuzz: end -->\n\nThe rest\.\n$/,
  )
  t.notMatch(page, 'before')
  await writeFile(file, '# Page\n')
  await t.rejects(writeReport(file, 7, [], 'limited'), UsageError)
})

const fuzz = (...args: string[]) => runProgram(t, [process.execPath, 'fuzz/main.ts', ...args])

t.test('one batch is run again by its seed, target and path', async t => {
  const { code, stdout, stderr } = await fuzz('--seed', '7', '--only', 'parameters', '--case', '3', '--json')
  t.equal(code, 0, stdout)
  t.match(stderr, /^seed 7; /)
  t.hasStrict(JSON.parse(stdout), { seed: 7, targets: [{ target: 'parameters', fault: null }] })
  t.ok(JSON.parse(stdout).targets[0].cases > 0)
})

t.test('a usage error is exit code 2 and one sentence, help is exit code 0', async t => {
  const { code, stdout, stderr } = await fuzz('--seconds', 'many')
  t.strictSame([code, stdout], [2, ''])
  t.match(stderr, /^fuzz: --seconds must be .*, got "many"; .*`--help`.*\n$/)
  const help = await fuzz('--help')
  t.equal(help.code, 0)
  t.match(help.stdout, /Example:\n {2}npm run -s fuzz -- /)
})
