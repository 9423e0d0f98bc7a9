// Without it a command of docs/load-testing.md could fail when pasted.

import { execFileSync } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { cleanEnv, commandServerIn, type Ended } from '../../../support/process.ts'
import { ok, startTarget } from '../replay/scripted-target.ts'

const root = join(import.meta.dirname, '../../../..')
const read = (...path: string[]): string => readFileSync(join(root, ...path), 'utf8')
const page = read('docs', 'load-testing.md')
const sectionOf = (text: string, heading: string): string =>
  new RegExp(`^## ${heading}.*?\\n(.*?)(?=^## |$(?![\\s\\S]))`, 'ms').exec(text)?.[1] ?? ''

/** The commands of all blocks, with a backslash where a line goes on. */
const commandsOf = (section: string): string[] =>
  [...section.matchAll(/^ *abohawa (?:.*\\\n)*.*$/gm)].map(([line]) => line.trim())

const folder = t.testdir({ samples: {} })
symlinkSync(join(root, 'config'), join(folder, 'config'))
const lines = gunzipSync(readFileSync(join(root, 'samples', 'weekday.ndjson.gz')))
  .toString()
  .split('\n')
writeFileSync(join(folder, 'samples', 'weekday.ndjson.gz'), gzipSync(`${lines.slice(0, 12).join('\n')}\n`))

const server = commandServerIn(t, folder)
const env = { ABOHAWA_STORE__PATH: join(folder, 'store.db') }

/** The words of a command, as a shell takes them. */
const wordsOf = (script: string): string[] => {
  const print = script.replace(/^abohawa /, "printf '%s\\0' ")
  const printed = execFileSync('bash', ['-euc', print], { cwd: folder, env: cleanEnv(), encoding: 'utf8' })
  return printed.split('\0').slice(0, -1)
}

/** Runs a command, whose output may go to a file. */
const run = async (script: string): Promise<Ended> => {
  const [, command = script, file] = /^(.*) > (\S+)$/s.exec(script) ?? []
  const ended = await server.run(wordsOf(command), env)
  if (file !== undefined) writeFileSync(join(folder, file), ended.stdout)
  return ended
}

const check = async (t: Test, commands: readonly string[]): Promise<void> => {
  for (const command of commands) {
    const { code, stderr } = await run(command)
    t.equal(code, 0, `${command}: ${stderr}`)
  }
}

t.test('replay, report and comparison', async t => {
  const target = await startTarget(t, () => ok('{}', 'cache-status: abohawa; hit; ttl=9; detail=memory\r\n'))
  // Those that create its keys are in the section before.
  const creating = commandsOf(sectionOf(page, 'Generate'))
    .filter(command => /keys/.test(command))
    .slice(-2)
  const commands = [...creating, ...commandsOf(sectionOf(page, 'Replay'))]
  t.equal(commands.length, 3)
  // A store that a gateway would have made; a bound that other work on the machine does not break.
  await check(t, [
    'abohawa keys create --create-store --subscriber A --tier free',
    ...commands.map(command =>
      command.replace('http://127.0.0.1:8080', target.url).replace('p99<50ms', 'p99<9s'),
    ),
  ])
  t.match(readFileSync(join(folder, 'report.html'), 'utf8'), /<!doctype html>/)
  t.equal(target.received.filter(({ path }) => path.startsWith('/api/v1/')).length, 12)
  // Of a moment, with a bound that breaks at once: how a rate is found is in replay-rates.test.ts.
  const rates = commandsOf(sectionOf(page, 'Find the highest rate'))
  t.equal(rates.length, 2)
  const [several = '', search = ''] = rates.map(command =>
    `${command} --duration 300ms --warm-up 50ms`.replace('http://127.0.0.1:8080', target.url),
  )
  await check(t, [several.replace('p99<50ms', 'p99<9s')])
  const { code, stdout } = await run(search.replace('p99<50ms', 'p99<1us'))
  t.ok(code === 99 || code === 1, 'slower, or the generator was')
  t.match(stdout, /\/s/)
  const outs = ['result', 'before', 'after'].map(name => `--out ${name}.json`).join(' ')
  await check(t, [
    `abohawa replay samples/weekday.ndjson.gz --target ${target.url} --keys issued.csv --rate 500 ${outs}`,
    ...commandsOf(sectionOf(page, 'Reports and comparisons')),
  ])
  t.match(readFileSync(join(folder, 'comparison.html'), 'utf8'), /<!doctype html>/)
})

t.test('rehearsal and what-if', async t => {
  const commands = ['Rehearse a day', 'What if'].flatMap(heading => commandsOf(sectionOf(page, heading)))
  t.equal(commands.length, 2)
  await check(t, commands)
  for (const name of ['rehearsal.html', 'what-if.html'])
    t.match(readFileSync(join(folder, name), 'utf8'), /<!doctype html>/, name)
})
