// Without this, a command with an invalid config file could change the default store, or a running gateway could not be queried.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'

t.test('a gateway with a broken file is seen by its address, and nothing else is done', async t => {
  const provider = await startProvider(t, ['--runs', 'none'], null)
  const folder = t.testdir()
  const file = join(folder, 'gateway.yaml')
  const right = `server: { port: 0, drainFor: 0s }
ops: { port: 0 }
store: { path: ${join(folder, 'store.db')} }
provider: { baseUrl: ${provider.url} }
`
  writeFileSync(file, right)
  const { urls } = await startCommand(t, ['serve', '--config', file], ['ops', 'api'])
  const run = (...args: string[]) => runCommand([...args, '--config', file])
  const made = await run('keys', 'create', '--subscriber', 'Leaked', '--tier', 'free', '--json')
  const { id } = JSON.parse(made.stdout) as { id: string }
  const here = ['--gateway', urls.ops ?? '']
  const nowhere = ['--gateway', 'http://127.0.0.1:9']
  const show = ['cache', 'show', 'district/3026']
  const broken: [text: string, reason: string][] = [
    [`${right}cache:\n  freshFor: 2\n`, 'gateway.yaml:6:13: cache.freshFor must be'],
    [`cache: {\n${right}`, 'this is not a YAML config file'],
    ['\0', 'gateway.yaml'],
  ]
  for (const [text, reason] of broken) {
    writeFileSync(file, text)
    for (const command of [['status'], show].map(words => [...words, ...here])) {
      const { code, stderr } = await run(...command)
      t.equal(code, 0, `${command.join(' ')}: ${stderr}`)
      t.match(stderr, 'The configuration is invalid; --gateway is used anyway:\n')
      t.match(stderr, reason)
    }
    for (const command of [
      ['status', ...nowhere],
      [...show, ...nowhere],
      ['status'],
      ['budget', 'reopen'],
      ['keys', 'revoke', id],
    ]) {
      const { code, stdout, stderr } = await run(...command)
      t.strictSame([code, stdout], [1, ''], command.join(' '))
      t.match(stderr, reason)
    }
  }
})

t.test('variables alone say where the gateway is and what it asks for', async t => {
  const file = join(t.testdir({ 'a.yaml': 'cahce: {}' }), 'a.yaml')
  const given = ['status', '--config', file, '--gateway', 'http://127.0.0.1:9']
  const { code, stderr } = await runCommand(given, { ABOHAWA_OPS__PORT: 'x' })
  t.equal(code, 1)
  t.match(stderr, /ABOHAWA_OPS__PORT: ops\.port must be .*, got "x"/)
})
