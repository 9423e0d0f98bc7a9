// Without this, a signal during the start could be lost, or end a process with its work half done.

import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { bareEnv, startCommand } from '../support/process.ts'
import { until } from '../support/until.ts'

const preload = pathToFileURL(`${import.meta.dirname}/early-signal.ts`).href

const start = (t: Test, signals: string, args: string[], listeners: string[]) =>
  startCommand(t, args, listeners, {
    NODE_OPTIONS: `--import=${preload}`,
    EARLY_SIGNALS: signals,
    ABOHAWA_STORE__PATH: ':memory:',
    ...bareEnv,
  })

t.test('SIGHUP and SIGUSR2 are acted upon after the start, and SIGALRM does nothing', async t => {
  const { child, lines, exited } = await start(t, 'SIGHUP SIGUSR2 SIGALRM', ['serve'], ['api'])
  for (const said of ['catalogue reloaded', 'configuration unchanged', 'no log file to reopen'])
    await until(said, () => lines.some(line => line.includes(said)))
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})

for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT'])
  t.test(`${signal} stops a gateway that starts, in order`, async t => {
    const { lines, exited } = await start(t, signal, ['serve'], [])
    t.equal(await exited, 0)
    const last = lines.slice(-2).map(line => JSON.parse(line))
    t.hasStrict(last, [{ msg: 'stopping', signal }, { msg: 'stopped' }])
  })

for (const args of [['provider', '--port', '0'], ['demo']])
  t.test(`a ${args[0]} that starts goes on at SIGUSR2, and ends in order at SIGHUP`, async t => {
    const { exited } = await start(t, 'SIGUSR2 SIGHUP', args, [])
    t.equal(await exited, 0)
  })
