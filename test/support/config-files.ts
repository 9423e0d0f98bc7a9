// The files that are made of the schema of the settings: the defaults, what editors read, and the table of the docs.
// `npm run config` writes them; a test compares them.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Document, type Pair, type Scalar, type YAMLMap } from 'yaml'
import type * as z from 'zod'
import { allowedIn } from '../../src/config/explain.ts'
import { configSchema } from '../../src/config/schema.ts'
import {
  defaultOf,
  descriptionOf,
  partsOf,
  printPath,
  type Setting,
  schemaAt,
  settings,
} from '../../src/config/tree.ts'
import { effectOf, exceptionOf } from '../../src/config/values.ts'
import { configJsonSchemaText } from './config-json-schema.ts'

const yamlHead = `# yaml-language-server: $schema=./schema.json
#
# Every setting, its default and what it costs to change it. This file is made of the program's own schema (\`npm run
# config\`) and is read by nobody: to change a setting, write it into a file of your own and name that file with --config,
# or set its variable: provider.baseUrl is ABOHAWA_PROVIDER__BASE_URL. Files given later win over earlier ones, and
# variables over files. Maps are merged, lists are replaced.
#
# Durations are written as 500ms, 30s, 10m, 1h or 400d, sizes as 512KiB, 64MiB, 1GiB or 10MB.
# Paths of files are relative to the directory the gateway is started in.

`

/** Lines of at most so many characters. */
const wrapped = (text: string, width: number): string => {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + word.length >= width) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.map(line => ` ${line}`).join('\n')
}

const valuesIn = (schema: z.core.$ZodType): unknown => {
  const parts = partsOf(schema)
  return parts
    ? Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, valuesIn(part)]))
    : defaultOf(schema)
}

const defaultYaml = (): string => {
  const document = new Document(valuesIn(configSchema))
  const describe = (map: YAMLMap, schema: z.core.$ZodType, depth: number): void => {
    for (const [i, { key, value }] of (map.items as Pair<Scalar, unknown>[]).entries()) {
      const part = schemaAt([String(key.value)], schema)
      if (!part) continue
      key.commentBefore = wrapped(descriptionOf(part), 116 - 2 * depth)
      key.spaceBefore = i > 0
      if (partsOf(part)) describe(value as YAMLMap, part, depth + 1)
    }
  }
  describe(document.contents as YAMLMap, configSchema, 0)
  return yamlHead + document.toString({ lineWidth: 0 })
}

const pageHead = `# The settings

Every setting with its default, made of the program's own schema by \`npm run config\`. How files and variables are given, and
what a change does: [changing the configuration](tuning.md#changing-the-configuration). How to choose some of them: [tuning](tuning.md).
What nobody has to tune is a constant with its reason beside it, in \`src/config/constants.ts\`.

A setting is given in a file under its name, or by the variable of its name: \`provider.baseUrl\` is
\`ABOHAWA_PROVIDER__BASE_URL\`. "Live" changes take effect while the gateway runs, all others with the next start.
`

const code = (text: string): string => `\`${text}\``
// A bar would end the column.
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')

const rowOf = (setting: Setting): string => {
  const { path, schema } = setting
  const exception = exceptionOf(setting)
  const effect =
    effectOf(setting) === 'live' ? `live${exception ? `, except ${exception}` : ''}` : 'a restart'
  const columns = [
    code(printPath(path)),
    cell(allowedIn(setting)),
    code(JSON.stringify(defaultOf(schema))),
    cell(effect),
    cell(descriptionOf(schema)),
  ]
  return `| ${columns.join(' | ')} |`
}

const page = (): string => {
  const rows = Object.entries(partsOf(configSchema) ?? {}).flatMap(([name, schema]) => [
    `| **${name}** | | | | ${descriptionOf(schema)} |`,
    ...settings.filter(({ path }) => path[0] === name).map(rowOf),
  ])
  return `${pageHead}
| Setting | Allowed | Default | A change | |
| --- | --- | --- | --- | --- |
${rows.join('\n')}
`
}

/** The text of each file, by its path in the repository. */
export const configFiles = (): Readonly<Record<string, string>> => ({
  'config/default.yaml': defaultYaml(),
  'config/schema.json': configJsonSchemaText(),
  'docs/operating/configuration.md': page(),
})

if (import.meta.main)
  for (const [path, text] of Object.entries(configFiles()))
    writeFileSync(join(import.meta.dirname, '../..', path), text)
