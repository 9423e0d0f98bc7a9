// A text of the reference in both languages: English in its OpenAPI field, Bengali in `x-description-bn` or `x-summary-bn`.

import * as z from 'zod'

export type Text = readonly [en: string, bn: string]

export const described = (...[en, bn]: Text) => ({ description: en, 'x-description-bn': bn })

export const summed = (...[en, bn]: Text) => ({ summary: en, 'x-summary-bn': bn })

/** The schemas that have a name in the document. */
export const named = z.registry<{ id: string }>()

/** A schema with its meaning, and its unit. */
export const field = <Schema extends z.ZodType>(
  schema: Schema,
  en: string,
  bn: string,
  unit?: string,
): Schema => schema.meta({ ...described(en, bn), ...(unit ? { 'x-unit': unit } : {}) })

/** A schema that has a name in the document. */
export const component = (id: string, en: string, bn: string, schema: z.ZodType): z.ZodType => {
  const made = schema.meta(described(en, bn))
  named.add(made, { id })
  return made
}
