// Generates the JSON Schema of a config file, for completion and checks in editors. Nothing is required in a file, because
// default.yaml has every default; values and descriptions come from there.

import * as z from 'zod'
import { DEFAULT_NAME } from './default-file.ts'
import { type Entry, readDefaults } from './defaults.ts'
import { configSchema } from './schema.ts'
import { defaultsChecksum } from './shipped-defaults.ts'
import { settings } from './tree.ts'
import { effectSentence } from './values.ts'

type JsonSchema = z.core.JSONSchema.JSONSchema

const isSchema = (schema: z.core.JSONSchema._JSONSchema | undefined): schema is JsonSchema =>
  typeof schema === 'object'

const described = (schema: JsonSchema, entry: Entry, path: readonly string[]): JsonSchema => {
  const setting = settings.find(each => each.path.join('.') === path.join('.'))
  const description = [entry.comment, setting && effectSentence(setting)].filter(Boolean).join(' ')
  return {
    ...(description && { description }),
    ...(schema.properties
      ? sectionOf(schema, entry.below, path)
      : { ...schema, default: entry.value as never }),
  }
}

const sectionOf = (
  { required: _, ...schema }: JsonSchema,
  entries: Map<string, Entry>,
  path: readonly string[] = [],
): JsonSchema => {
  const properties = Object.entries(schema.properties ?? {}).map(([key, part]) => {
    const entry = entries.get(key)
    return [key, isSchema(part) && entry ? described(part, entry, [...path, key]) : part]
  })
  return {
    ...schema,
    // A section whose settings are all commented out is null to YAML.
    type: ['object', 'null'] as never,
    properties: Object.fromEntries(properties),
    patternProperties: { '^x-': {} },
  }
}

/** JSON Schema (draft 2020-12) of a config file: every setting optional, no other allowed. */
export const configJsonSchema = (): object => {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { target: 'draft-2020-12', io: 'input' })
  return {
    $schema,
    title: 'Abohawa configuration',
    description: `Settings of the weather gateway; what a file leaves out is as in ${DEFAULT_NAME}.`,
    $comment: defaultsChecksum(),
    ...sectionOf(schema, readDefaults()),
  }
}

/** The same as text, laid out as the project's formatter keeps it: what config/schema.json holds. */
export const configJsonSchemaText = (): string =>
  `${JSON.stringify(configJsonSchema(), null, 2).replace(/\[\n\s+[^[\]{}]*?\n\s+\]/g, list => list.replace(/\n\s+/g, ' ').replace('[ ', '[').replace(' ]', ']'))}\n`
