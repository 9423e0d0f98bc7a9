// Without it a newcomer would find a command of a tutorial that stopped working. All run in their order and in one shell; only ports are
// replaced, and the address and key that a person copies from the demo.

import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../support/listening.ts'
import { cleanEnv, spawnProgram, startCommand } from '../support/process.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')

/** What a shell prints when it runs the blocks of a page that are marked `sh`. */
const follow = async (
  t: Test,
  page: string,
  env: Readonly<Record<string, string>>,
  replaced: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const folder = t.testdir()
  for (const name of ['config', 'samples']) symlinkSync(join(root, name), join(folder, name))
  const markdown = readFileSync(join(root, 'docs/tutorials', page), 'utf8')
  const blocks = [...markdown.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  t.ok(blocks.length > 3, `${blocks.length} blocks`)
  const commands = Object.entries(replaced).reduce(
    (script, [from, to]) => script.replaceAll(from, to),
    blocks.join('\n'),
  )
  const path = `${join(root, 'bin')}:${process.env.PATH ?? ''}`
  const { child, said, exited, closed } = spawnProgram(t, ['bash', '-euo', 'pipefail', '-c', commands], {
    cwd: folder,
    // A group of its own, so that what a failed page left running can be ended with it.
    detached: true,
    env: { ...cleanEnv(env), PATH: path },
  })
  const code = await exited
  try {
    process.kill(-(child.pid ?? 0))
  } catch {}
  await closed
  t.equal(code, 0, said.stderr)
  return said.stdout
}

/** Ports in place of those of the page, and the settings that have a gateway listen there. */
const ports = async () => {
  const [api, ops, provider] = [await freePort(), await freePort(), await freePort()].map(String) as [
    string,
    string,
    string,
  ]
  return {
    env: { ABOHAWA_SERVER__PORT: api, ABOHAWA_OPS__PORT: ops },
    replaced: {
      ':8080': `:${api}`,
      ':9090': `:${ops}`,
      ':8090': `:${provider}`,
      'port 8090': `port ${provider}`,
    },
  }
}

t.test('a consumer finds a place, its weather, a 304, several places and the own use', async t => {
  const demo = await startCommand(t, ['demo', '--json'], [])
  await until('the demo has printed its keys', () => demo.lines.some(line => line.startsWith('{')))
  const { apiUrl, keys } = JSON.parse(demo.lines.find(line => line.startsWith('{')) ?? '')
  const printed = await follow(t, 'consumer.md', { ABOHAWA_URL: apiUrl, ABOHAWA_KEY: keys.at(-1).key })
  t.match(printed, /"total":1/)
  t.match(printed, /"id":"6091"/)
  t.match(printed, /^304$/m)
  t.match(printed, /cache-control: private, max-age=\d+/)
  t.match(printed, /"remaining":\d+/)
  // Killed, it could not end its gateway.
  demo.child.kill('SIGINT')
  t.equal(await demo.exited, 0)
})

t.test('an operator starts a gateway, looks into it and changes it', async t => {
  const { env, replaced } = await ports()
  const printed = await follow(t, 'operator.md', env, replaced)
  t.match(printed, /^The configuration is (?:right|valid)\.$/m)
  t.match(printed, /cache-status: .*fwd=miss/)
  t.match(printed, /Dhaka Tribune/)
})

t.test('a load-tester looks at traffic, computes a setting, and sends traffic', async t => {
  const { env, replaced } = await ports()
  const printed = await follow(t, 'load-tester.md', env, replaced)
  t.match(printed, /^ *all +/m)
})
