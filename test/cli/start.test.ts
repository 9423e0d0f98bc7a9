// Without this, a start could load modules that it does not need, which only its time would show.

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { bareEnv, product, startCommand } from '../support/process.ts'

const root = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)

/** What a script prints as JSON under the options of bin/abohawa. */
const printed = async (script: string): Promise<unknown> => {
  const [, options = ''] = /^exec "\$node" (.+?)"\$home/ms.exec(readFileSync(product, 'utf8')) ?? []
  const args = [
    ...options.replaceAll('\\', ' ').trim().split(/\s+/),
    '--expose-internals',
    '--input-type=module',
    '--eval',
    script,
  ]
  const { stdout } = await run(process.execPath, args, { cwd: root })
  return JSON.parse(stdout)
}

t.test('a gateway loads neither fetch, nor prom-client, nor what sends to the provider', async t => {
  const loaded = (await printed(`
  import { createRequire } from 'node:module'
  for (const file of ['cli/program', 'telemetry/log', 'gateway']) await import('./src/' + file + '.ts')
  const files = Object.keys(createRequire('file:///').cache)
  console.log(JSON.stringify([...process.moduleLoadList, ...files]))
`)) as string[]
  t.ok(loaded.includes('NativeModule http'))
  t.ok(loaded.some(one => one.includes('/node_modules/pino/')))
  const unneeded = /internal\/deps\/undici|@opentelemetry|node_modules\/(cockatiel|prom-client|undici)\//
  t.notOk(loaded.find(one => unneeded.test(one)))
})

const hook = join(root, 'test', 'support', 'loaded-modules.ts')
const folders = (urls: readonly string[]): string[] => [
  ...new Set(
    urls.flatMap(url => /\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/src\/([^/.]+)/.exec(url)?.slice(1) ?? []),
  ),
]

t.test('with settings from the environment alone, nothing that reads YAML is loaded', async t => {
  const loaded = (await printed(`
    import { createRequire } from 'node:module'
    const { readConfig } = await import('./src/config/load.ts')
    const { fleetHashOf } = await import('./src/config/values.ts')
    const env = { ABOHAWA_SERVER__PORT: '0', ABOHAWA_LOG__ACCESS: 'true', ABOHAWA_STORE__PATH: 'a.db' }
    const { config } = readConfig({ files: [], env })
    fleetHashOf(config)
    console.log(JSON.stringify([config.store.path, ...Object.keys(createRequire('file:///').cache)]))
  `)) as string[]
  t.equal(loaded[0], 'a.db')
  t.notOk(loaded.find(one => one.includes('yaml')))
})

t.test('a command loads what it needs, and nothing of the others', async t => {
  const loadedBy = async (...words: string[]): Promise<string[]> => {
    const file = join(t.testdir({ modules: '' }), 'modules')
    const store = { ABOHAWA_STORE__PATH: join(t.testdirName, 'none'), NODE_COMPILE_CACHE: '' }
    const env = { ...process.env, ...store, NODE_OPTIONS: `--import=${hook}`, LOADED_MODULES: file }
    await run(product, words, { env }).catch(() => {})
    return folders(readFileSync(file, 'utf8').split('\n')).filter(name => name !== undefined)
  }
  const rooms = ['api', 'cache', 'gateway', 'load', 'operate', 'provider', 'telemetry']
  const others = [...rooms, 'fastify', 'pino', 'undici']
  const loadedOf = (loaded: readonly string[], names: readonly string[]): string[] =>
    names.filter(name => loaded.includes(name))
  for (const words of [['--version'], ['--help'], ['--help', 'keys'], [], ['stauts']]) {
    const loaded = await loadedBy(...words)
    t.ok(loaded.includes('commander'), words.join(' '))
    t.strictSame(loadedOf(loaded, [...others, 'config', 'ioredis', 'keys', 'stores', 'yaml', 'zod']), [])
  }
  const ofKeys = await loadedBy('keys', 'list')
  t.ok(ofKeys.includes('keys') && ofKeys.includes('zod'))
  t.strictSame(loadedOf(ofKeys, others), [])
})

t.test('a second start takes all code from the cache: what it would refuse, it would write anew', async t => {
  const folder = t.testdir({ cache: {} })
  const cache = join(folder, 'cache')
  const startAndStop = async (): Promise<string[]> => {
    const { child, exited } = await startCommand(t, ['serve'], ['api', 'ops'], {
      NODE_COMPILE_CACHE: cache,
      ...bareEnv,
      ABOHAWA_STORE__PATH: ':memory:',
    })
    child.kill('SIGTERM')
    t.equal(await exited, 0)
    return readdirSync(cache, { recursive: true, encoding: 'utf8' }).flatMap(name => {
      const file = statSync(join(cache, name), { bigint: true })
      return file.isFile() ? [`${name} ${file.ino} ${file.mtimeNs}`] : []
    })
  }
  const first = await startAndStop()
  t.ok(first.length > 100)
  // It may add what the first one was stopped before.
  const second = new Set(await startAndStop())
  t.strictSame(
    first.filter(entry => !second.has(entry)),
    [],
  )
})
