// The files in config/: the defaults, the examples, and the schema for editors.

import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { DEFAULT_FILE, DEFAULT_NAME } from '../../src/config/default-file.ts'
import { readDefaults } from '../../src/config/defaults.ts'
import { isFault, type Reading } from '../../src/config/faults.ts'
import { configJsonSchema, configJsonSchemaText } from '../../src/config/json-schema.ts'
import { loadConfig } from '../../src/config/load.ts'
import { readDefaultValues } from '../../src/config/shipped-defaults.ts'
import { printPath, settings } from '../../src/config/tree.ts'
import { readYamlFile } from '../../src/config/yaml-file.ts'

const root = join(import.meta.dirname, '..', '..')
const folder = new URL('../../config/', import.meta.url)
const textOf = (name: string): string => readFileSync(new URL(name, folder), 'utf8')
const yamlFiles = readdirSync(folder).filter(name => name.endsWith('.yaml'))

type Schema = {
  description?: string
  default?: unknown
  required?: string[]
  additionalProperties?: unknown
  properties?: Record<string, Schema>
  items?: Schema
  pattern?: string
}
const schema = configJsonSchema() as Schema

t.test('config/schema.json is up to date', async t => {
  const renew = 'run: npm run -s abohawa -- config schema > config/schema.json'
  t.strictSame(JSON.parse(textOf('schema.json')), JSON.parse(JSON.stringify(schema)), renew)
  t.equal(textOf('schema.json'), configJsonSchemaText(), 'and laid out as the formatter keeps it')
})

t.test(
  'the values that a start takes from schema.json are those of default.yaml, with their places',
  async t => {
    const byPath = (reading: Reading): unknown[] =>
      reading.map(part => (isFault(part) ? part : [printPath(part.path), part.value, part.at([])])).sort()
    const inYaml = byPath(readYamlFile(DEFAULT_FILE, DEFAULT_NAME).reading)
    const inSchema = byPath(readDefaultValues())
    t.ok(inYaml.length > 100)
    t.strictSame(inSchema, inYaml)
  },
)

t.test('a default.yaml that was changed since is in effect without a new schema.json', async t => {
  const home = t.testdir({})
  for (const part of ['bin', 'config', 'package.json', 'src'])
    cpSync(join(root, part), join(home, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'))
  const shown = async (): Promise<unknown> => {
    const args = [join(home, 'src', 'main.ts'), 'config', 'print', '--json']
    return JSON.parse((await promisify(execFile)(process.execPath, args, { env: {} })).stdout)
  }
  t.match(await shown(), { server: { port: 8080 } })
  const file = join(home, 'config', 'default.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace('port: 8080', 'port: 8088'))
  t.match(await shown(), { server: { port: 8088 } })
})

t.test('every YAML file names its schema in its first line', async t => {
  t.strictSame(yamlFiles.toSorted(), ['default.yaml', 'load-test.yaml', 'production.yaml'])
  for (const name of yamlFiles)
    t.equal(textOf(name).split('\n')[0], '# yaml-language-server: $schema=./schema.json', name)
})

t.test('every section and setting stands in default.yaml under a comment', async t => {
  const defaults = readDefaults()
  t.strictSame([...defaults.keys()], Object.keys(schema.properties ?? {}))
  for (const { path } of settings) {
    let entries = defaults
    for (const [depth, key] of path.entries()) {
      const entry = entries.get(key)
      t.match(entry?.comment, /^[A-Z].{20,}\.$/s, path.slice(0, depth + 1).join('.'))
      entries = entry?.below ?? new Map()
    }
  }
})

t.test(
  'the schema for editors requires nothing, allows nothing unknown and describes everything',
  async t => {
    const check = (part: Schema, path: string) => {
      t.ok(part.description, `${path} is described`)
      if (!part.properties) return t.ok('default' in part, `${path} has its default`)
      t.equal(part.required, undefined, `${path} requires nothing`)
      t.equal(part.additionalProperties, false, `${path} allows nothing else`)
      for (const [key, below] of Object.entries(part.properties)) check(below, `${path}.${key}`)
    }
    check(schema, 'config')
    const { cache, catalogue } = schema.properties ?? {}
    t.match('1.5h', new RegExp(cache?.properties?.freshFor?.pattern ?? ''))
    t.notMatch('10', new RegExp(cache?.properties?.freshFor?.pattern ?? ''))
    t.match('64MiB', new RegExp(cache?.properties?.memory?.pattern ?? ''))
    t.strictSame(catalogue?.properties?.sources?.items?.required, ['name', 'url', 'licence', 'date'])
  },
)

t.test('the file for production is a configuration for a fleet behind proxies', async t => {
  const config = loadConfig({ files: ['config/production.yaml'], env: {} })
  t.match(config, { server: { host: '0.0.0.0', trustedProxies: ['10.0.0.0/8'] }, redis: { url: /^redis:/ } })
})

t.test('the file for load tests points at a provider on the same machine', async t => {
  const config = loadConfig({ files: ['config/load-test.yaml'], env: {} })
  t.match(config, { provider: { baseUrl: /^http:\/\/127\.0\.0\.1:/ }, log: { level: 'warn', access: false } })
  t.ok(config.provider.maxConcurrent > 1)
})
