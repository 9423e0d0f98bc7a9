// Without it mutants could change comments and types, not compile or differ from run to run, and a dead test would kill none.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { API } from 'typescript/unstable/sync'
import { drawMutants } from '../../proof/mutants/draw.ts'
import { equivalents } from '../../proof/mutants/equivalents.ts'
import { openCopy, verdictOf } from '../../proof/mutants/judge.ts'
import { changesOf } from '../../proof/mutants/operators.ts'
import { withoutPrlimit } from '../support/process.ts'

const root = new URL('../../', import.meta.url).pathname

t.test('a seed draws the same mutants each time, each of code', async t => {
  const mutants = drawMutants(root, 6, 1, ['cache'])
  t.equal(mutants.length, 6)
  t.ok(isDeepStrictEqual(mutants, drawMutants(root, 6, 1, ['cache'])))
  t.notOk(isDeepStrictEqual(mutants.slice(0, 1), drawMutants(root, 1, 2, ['cache'])))
  for (const { file, before, after, source } of mutants) {
    t.ok(source !== readFileSync(join(root, file), 'utf8') && before !== after, file)
    t.notMatch(before, /^(\/\/|\/\*|import |export type )/, file)
  }
})

t.test('a file has changes of every kind', async t => {
  const api = new API({ cwd: root })
  t.teardown(() => api.close())
  const [project] = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()
  const tree = project?.program.getSourceFile(join(root, 'src/cache/failures.ts'))
  const operators = new Set((tree ? changesOf(tree) : []).map(({ operator }) => operator))
  t.strictSame(
    [...operators].sort().join(),
    'arithmetic,comparison,constant,dropped statement,early return,empty,logic,negation,swapped arguments',
  )
})

t.test('a run fails, uses up its memory or its processor, or is late', { skip: withoutPrlimit }, async t => {
  const copy = openCopy(root)
  t.teardown(copy.close)
  const endOfText = (text: string, cpuMs = 60_000, clockMs = 300_000) => {
    copy.write('test/made-up.ts', text)
    return copy.runTest('test/made-up.ts', cpuMs, clockMs)
  }
  t.equal(await endOfText("import '../src/cache/freshness.ts'"), 'passed')
  t.equal(await endOfText('process.exitCode = 1'), 'failed')
  t.equal(await endOfText('Buffer.alloc(2 ** 31, 1)'), 'failed')
  t.equal(await endOfText('for (;;);', 1_000), 'loops')
  t.equal(await endOfText('setInterval(() => {}, 1_000)', 60_000, 1_000), 'late')
})

t.test('only a failure that comes twice and an endless loop are kills', async t => {
  type Run = Parameters<typeof verdictOf>[1]
  const verdictOfRuns = async (...ends: Awaited<ReturnType<Run>>[]) => {
    const limits: number[] = []
    const verdict = await verdictOf(10, async clockMs => {
      limits.push(clockMs)
      const [next] = ends.splice(0, 1)
      if (!next) throw new Error('one run too many')
      return next
    })
    return [verdict, ...limits]
  }
  t.strictSame(await verdictOfRuns('passed'), ['passed', 20])
  t.strictSame(await verdictOfRuns('loops'), ['killed', 20])
  t.strictSame(await verdictOfRuns('failed', 'failed'), ['killed', 20, 20])
  t.strictSame(await verdictOfRuns('failed', 'passed'), ['passed', 20, 20])
  t.strictSame(await verdictOfRuns('late', 'passed'), ['passed', 20, 60])
  t.strictSame(await verdictOfRuns('late', 'late'), ['does not end', 20, 60])
  t.strictSame(await verdictOfRuns('late', 'failed', 'late', 'failed'), ['killed', 20, 60, 20, 60])
  t.strictSame(await verdictOfRuns('failed', 'late', 'late'), ['does not end', 20, 20, 60])
})

t.test('each mutant that changes nothing is still in its file', async t => {
  for (const { file, before, after, why } of equivalents) {
    const text = readFileSync(join(root, file), 'utf8').replace(/\s+/g, ' ')
    t.ok(text.includes(before), `${file}: ${before}`)
    t.not(before, after)
    t.ok(why.length > 20, before)
  }
})

t.test('--help and --list run nothing, and a wrong option is one sentence', async t => {
  const mutants = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, 'proof/mutants/main.ts'), ...args], { encoding: 'utf8' })
  t.match(mutants('--help').stdout, /Example:\n {2}npm run mutants -- --count 60/)
  t.match(
    mutants('--list', '--count', '1', '--rooms', 'keys').stdout,
    /^1\. src\/keys\/.+:\d+\n {3}- .+\n {3}\+ /,
  )
  const { status, stderr } = mutants('--rooms', 'kitchen')
  t.equal(status, 2)
  t.equal(
    stderr,
    'mutants: --rooms must be some of cache, keys, provider, api, got "kitchen"; `--help` shows what is allowed\n',
  )
})
