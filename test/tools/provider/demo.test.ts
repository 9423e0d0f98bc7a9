// Without it the first commands that a newcomer pastes could fail, or leave processes behind.

import { readdirSync } from 'node:fs'
import t from 'tap'
import { outputOf, startCommand } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const shell = (line: string) => outputOf(t, ['bash', '-c', line])

type DemoOutput = { apiUrl: string; opsUrl: string; keys: { tier: string; key: string }[]; curl: string[] }

/** Runs the demo until it has printed all of its lines. */
const startDemo = async (args: readonly string[], temporary: string) => {
  const demo = await startCommand(t, ['demo', ...args], [], { TMPDIR: temporary })
  const isWhole = () => demo.lines.some(line => line.startsWith('{') || line.startsWith('Ctrl-C'))
  await until('the demo has printed all', isWhole)
  return demo
}

t.test('it prints a line for each endpoint, and each works when pasted', async t => {
  const temporary = t.testdir()
  const demo = await startDemo([], temporary)
  const text = demo.lines.join('\n')
  t.match(text, /^Abohawa is ready\./)
  for (const tier of ['free', 'starter', 'business', 'enterprise'])
    t.match(text, new RegExp(`${tier} +\\d+ +svc_live_`))
  const lines = text.match(/curl .*/g) ?? []
  t.equal(lines.length, 5)
  const fields = [['current', 'hourly', 'daily'], ['current'], ['daily'], ['results', 'total'], ['location']]
  for (const [i, line] of lines.entries()) {
    const body = JSON.parse(await shell(line))
    for (const field of fields[i] ?? []) t.ok(field in body, `${field} in ${line}`)
  }

  const [, status = ''] = /^ {2}Status +(npm .*)$/m.exec(text) ?? []
  t.match(await shell(status), /^Abohawa .*\n\nInstances\n/)

  const second = await startDemo(['--json'], temporary)
  const output = JSON.parse(second.lines[0] ?? '') as DemoOutput
  t.notOk(text.includes(output.apiUrl), 'a second one takes other ports')
  t.equal(output.keys.length, 4)
  t.equal(JSON.parse(await shell(output.curl[4] ?? '')).location.id, '3026')

  for (const { child, exited } of [demo, second]) {
    child.kill('SIGINT')
    t.equal(await exited, 0)
  }
  // Its port is free, and another test may have it by now.
  const after = await shell(output.curl[4] ?? '').catch(() => '')
  t.notMatch(after, '3026', 'nothing serves its keys any more')
  t.strictSame(readdirSync(temporary), [], 'nothing is left')
})

t.test('its gateway ends when the demo is killed', async t => {
  const demo = await startDemo(['--json'], t.testdir())
  const { opsUrl } = JSON.parse(demo.lines[0] ?? '') as DemoOutput
  t.equal((await fetch(`${opsUrl}/livez`)).status, 200)
  demo.child.kill('SIGKILL')
  await until('nothing listens there', () =>
    fetch(`${opsUrl}/livez`).then(
      () => false,
      () => true,
    ),
  )
})
