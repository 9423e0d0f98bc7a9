// Generates the JSON Schema of a config file, for completion and checks in editors. Nothing is required in a file: the schema has
// every default.

import * as z from 'zod'
import { configSchema } from '../../src/config/schema.ts'
import { type Setting, settings } from '../../src/config/tree.ts'
import { effectOf, exceptionOf } from '../../src/config/values.ts'

type JsonSchema = z.core.JSONSchema.JSONSchema

const bySchema = new Map<unknown, Setting>(settings.map(setting => [setting.schema, setting]))

/** JSON Schema (draft 2020-12) of a config file: every setting optional, no other allowed. */
export const configJsonSchema = (): object => {
  const { $schema, description, ...schema } = z.toJSONSchema(configSchema, {
    target: 'draft-2020-12',
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      const setting = bySchema.get(zodSchema)
      if (setting) jsonSchema.description = `${jsonSchema.description} ${effectSentence(setting)}`
      if (jsonSchema.properties) asSection(jsonSchema)
    },
  })
  return { $schema, title: 'Abohawa configuration', description, ...schema }
}

/** Whether a change takes effect without a restart, as a sentence. */
const effectSentence = (setting: Setting): string => {
  if (effectOf(setting) === 'restart') return 'A change needs a restart.'
  const exception = exceptionOf(setting)
  return `A change takes effect without a restart${exception ? `, except ${exception}` : ''}.`
}

const asSection = (schema: JsonSchema): void => {
  delete schema.required
  delete schema.default
  // A section whose settings are all commented out is null to YAML.
  schema.type = ['object', 'null'] as never
  schema.patternProperties = { '^x-': {} }
}

/** The same as text, laid out as the project's formatter keeps it: what config/schema.json holds. */
export const configJsonSchemaText = (): string =>
  `${JSON.stringify(configJsonSchema(), null, 2).replace(/\[\n\s+[^[\]{}]*?\n\s+\]/g, list => list.replace(/\n\s+/g, ' ').replace('[ ', '[').replace(' ]', ']'))}\n`
