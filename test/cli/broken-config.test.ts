// Commands that operators need most when a config file is broken: they take the part that they need, say what is wrong with the
// rest, and refuse where a fault leaves unknown which store or gateway is meant.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError } from '../../src/config/load.ts'
import { rightPartOf } from '../../src/config/right-part.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'
import { freePort } from '../support/redis-server.ts'

t.test(
  'a gateway with a broken file is seen, its budget and its cache too, and a key is revoked',
  async t => {
    const provider = await startProvider(t, ['--runs', 'none'], null)
    const folder = t.testdir()
    const file = join(folder, 'gateway.yaml')
    const port = await freePort()
    const right = `server: { port: 0, drainFor: 0s }
ops:
  port: ${port}
store:
  path: ${join(folder, 'store.db')}
provider:
  baseUrl: ${provider.url}
config: { pollEvery: 20ms }
`
    writeFileSync(file, right)
    const { urls } = await startCommand(t, ['serve', '--config', file], ['ops', 'api'])
    const run = (...args: string[]) => runCommand([...args, '--config', file])
    const made = await run('keys', 'create', '--subscriber', 'Leaked', '--tier', 'free', '--json')
    const { id, key } = JSON.parse(made.stdout) as { id: string; key: string }
    const broken: [text: string, reason: string][] = [
      [`${right}cache:\n  freshFor: 2\n`, 'gateway.yaml:10:13: cache.freshFor is 2, but must be'],
      [`cache: {\n${right}`, 'this is not a YAML config file'],
      [`${right}log:\n level: warn\n  access: on\n`, 'gateway.yaml:1'],
      [`${right}cache: { staleFor: 30h, freshFor: 30h }\n`, 'together must be at most 48h'],
    ]
    for (const [i, [text, reason]] of broken.entries()) {
      writeFileSync(file, text)
      const commands = [
        ['keys', 'revoke', id, ...(i % 2 === 0 ? ['--undo'] : [])],
        ['status', '--gateway', urls.ops ?? ''],
        ['cache', 'show', 'district/3026'],
      ]
      for (const command of i === 0 ? commands : commands.slice(0, 1)) {
        const { code, stderr } = await run(...command)
        t.equal(code, 0, `${command.join(' ')}: ${stderr}`)
        t.match(stderr, 'The configuration is broken, in what this command does not need:\n')
        t.match(stderr, reason)
      }
    }
    const response = await fetch(`${urls.api}/api/v1/locations`, { headers: { 'x-api-key': key } })
    t.equal(response.status, 401)
    t.match(
      await run('keys', 'create', '--subscriber', 'New', '--tier', 'free'),
      { code: 1 },
      'nothing is made',
    )
    // With the address by name even a file that is nothing at all.
    writeFileSync(file, '\0')
    t.match(await run('status', '--gateway', urls.ops ?? ''), { code: 0 })
    t.match(await run('keys', 'revoke', id), { code: 1, stderr: /gateway\.yaml/ })
  },
)

const neededOf = (t: Test, text: string, env: NodeJS.ProcessEnv = {}) => {
  const file = join(t.testdir(), 'a.yaml')
  writeFileSync(file, text)
  return (...needed: string[]): string => {
    const { config, require } = rightPartOf({ files: [file], env })
    try {
      require(needed)
      return `${config.redis.url} ${config.store.path}`
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return 'refused'
    }
  }
}

for (const [what, text, env, outcome] of [
  ['a fault elsewhere', 'redis: { url: redis://a }\ncache: { freshFor: 2 }\n', {}, 'redis://a'],
  ['a fault of the section', 'redis: { url: redis://a, mode: x }\n', {}, 'refused'],
  ['a misspelt name in it', 'redis: { ulr: redis://a }\n', {}, 'refused'],
  ['a misspelt section', 'reddis: { url: redis://a }\n', {}, 'refused'],
  ['a name of nothing', 'redis: { url: redis://a }\nwhatever: 1\n', {}, 'redis://a'],
  ['a misspelt variable of it', '', { ABOHAWA_REDIS__ULR: 'redis://a' }, 'refused'],
  ['a misspelt variable of another', 'redis: { url: redis://a }\n', { ABOHAWA_CACHE__X: '1' }, 'redis://a'],
  ['an entry that is no YAML, behind', 'redis:\n  url: redis://a\ncache: [\n', {}, 'redis://a'],
  ['and before', 'cache: "\nredis:\n  url: redis://a\n', {}, 'redis://a'],
  ['an own entry that is none', 'redis:\n  url: redis://a\n  mode: [\n', {}, 'refused'],
  ['the section twice', 'redis:\n  url: redis://a\nredis:\n  url: redis://b\n', {}, 'refused'],
  ['twice beside no YAML', 'redis:\n  url: redis://a\ncache: [\nredis:\n  url: redis://b\n', {}, 'refused'],
  ['an entry that has swallowed it', 'server:\n  port: 1\n redis:\n  url: redis://a\n', {}, 'refused'],
  ['the same, misspelt', 'server:\n  port: 1\n reddis:\n  url: redis://a\n', {}, 'refused'],
  ['an entry within an entry', '"server": {"port": 1, "redis":{"url": "redis://a"\n', {}, 'refused'],
  [
    'a repeated entry with it',
    'log: [\nserver:\nserver:\n  a: 1\n redis:\n  url: redis://a\n',
    {},
    'refused',
  ],
  [
    'an entry that names an address',
    'redis: { url: redis://a }\nlog:\n a: redis:1\n retries: [\n',
    {},
    'redis://a',
  ],
  ['marks of a merge', '<<<<<<< HEAD\nredis:\n  url: redis://a\n=======\n>>>>>>> b\n', {}, 'refused'],
  ['JSON that ends early', '{"redis":{"url":"redis://a"},\n"cache":{', {}, 'refused'],
  ['the same, and a variable', '{"cache":{', { ABOHAWA_REDIS__URL: 'redis://a' }, 'redis://a'],
] as const)
  t.test(`the store beside ${what}`, async t => {
    t.match(neededOf(t, text, env)('redis', 'store'), outcome)
  })

t.test('a file that is not there leaves all unknown but what variables give', async t => {
  const at = (env: NodeJS.ProcessEnv) => rightPartOf({ files: [join(t.testdir(), 'none.yaml')], env })
  t.throws(() => at({}).require(['redis']), /there is no such file/)
  t.doesNotThrow(() => at({ ABOHAWA_REDIS__URL: 'redis://a' }).require(['redis', 'store']))
  t.doesNotThrow(() => at({}).require([]))
})
