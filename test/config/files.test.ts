// The files in config/: the defaults, the examples, and the schema for editors.

import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { readDefaults } from '../../src/config/defaults.ts'
import { configJsonSchema, configJsonSchemaText } from '../../src/config/json-schema.ts'
import { loadConfig } from '../../src/config/load.ts'
import { settings } from '../../src/config/tree.ts'

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
