// Without this, the example files, the editor schema and the page of settings could differ from the code.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { descriptionOf, schemaAt, settings } from '../../src/config/tree.ts'
import { configFiles, configJsonSchema } from '../../tools/reference/config-files.ts'

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
  pattern?: string
}
const schema = configJsonSchema() as Schema

for (const [path, text] of Object.entries(configFiles()))
  t.test(`${path} is what the schema makes it; else run: npm run config`, async t => {
    t.equal(readFileSync(join(root, path), 'utf8'), text)
  })

t.test('the file of defaults is a configuration, and changes nothing', async t => {
  t.strictSame(loadConfig({ files: ['config/default.yaml'], env: {} }), loadConfig({ files: [], env: {} }))
})

t.test('there are at most 61 settings', async t => {
  t.ok(settings.length <= 61, `${settings.length} settings`)
})

t.test('every YAML file names its schema in its first line', async t => {
  t.strictSame(yamlFiles.toSorted(), ['default.yaml', 'load-test.yaml', 'production.yaml'])
  for (const name of yamlFiles)
    t.equal(textOf(name).split('\n')[0], '# yaml-language-server: $schema=./schema.json', name)
})

t.test('every section and setting is described', async t => {
  for (const { path } of settings)
    for (const depth of path.keys()) {
      const at = schemaAt(path.slice(0, depth + 1))
      t.match(at && descriptionOf(at), /^[A-Z].{20,}\.$/, path.slice(0, depth + 1).join('.'))
    }
})

t.test('the schema for editors requires nothing, allows nothing else and describes all', async t => {
  const check = (part: Schema, path: string) => {
    t.ok(part.description, `${path} is described`)
    if (!part.properties) return t.ok('default' in part, `${path} has its default`)
    t.equal(part.required, undefined, `${path} requires nothing`)
    t.equal(part.additionalProperties, false, `${path} allows nothing else`)
    for (const [key, below] of Object.entries(part.properties)) check(below, `${path}.${key}`)
  }
  check(schema, 'config')
  const { cache } = schema.properties ?? {}
  t.match('1.5h', new RegExp(cache?.properties?.freshFor?.pattern ?? ''))
  t.notMatch('10', new RegExp(cache?.properties?.freshFor?.pattern ?? ''))
  t.match('64MiB', new RegExp(cache?.properties?.memory?.pattern ?? ''))
})

t.test('the files for production and for load tests are configurations', async t => {
  const config = loadConfig({ files: ['config/production.yaml'], env: {} })
  t.match(config, {
    server: { host: '0.0.0.0', trustedProxies: ['10.0.0.0/8'] },
    redis: { url: /^redis:/ },
  })
  const ofLoad = loadConfig({ files: ['config/load-test.yaml'], env: {} })
  t.match(ofLoad, {
    provider: { baseUrl: /^http:\/\/127\.0\.0\.1:/ },
    log: { level: 'warn', access: false },
  })
  t.ok(ofLoad.provider.maxConcurrent > 1)
})
