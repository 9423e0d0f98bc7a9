// A zod schema as readable JSON Schema: null beside its type, no bounds of a double, and open objects, because new fields may
// come.

import * as z from 'zod'

const plainer = ({ jsonSchema: schema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void => {
  const [first, second, ...others] = schema.anyOf ?? []
  if (first?.type && second?.type === 'null' && others.length === 0) {
    delete schema.anyOf
    Object.assign(schema, first, { type: [first.type, 'null'] })
  }
  if (schema.additionalProperties === false) delete schema.additionalProperties
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  // The source of a regular expression has a backslash before each slash, to which code generators add theirs.
  if (schema.pattern)
    schema.pattern = schema.pattern.replaceAll(/\\(.)/g, (pair, letter) => (letter === '/' ? letter : pair))
}

type Json = Record<string, unknown>

/** A schema that stands by itself. */
export const jsonSchemaOf = (schema: z.ZodType): Json => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'output', override: plainer })
  return rest
}

/** The schemas of a registry by their id, which refer to each other as components. */
export const componentsOf = (registry: z.core.$ZodRegistry<{ id: string }>): Json => {
  const { schemas } = z.toJSONSchema(registry, {
    io: 'output',
    override: plainer,
    uri: id => `#/components/schemas/${id}`,
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _, $id: _id, ...schema }]) => [id, schema]),
  )
}
