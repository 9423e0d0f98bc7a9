// How a section of a file becomes a section of the program's configuration and back: the same settings, those with
// a unit under a name that says so. The only place where settings are renamed.

import * as z from 'zod'

type Measured = { unit: string }

/** A section as the program sees it: a name that has a unit says so (`freshFor` becomes `freshForMs`). */
type Named<Shape extends z.ZodRawShape> = {
  [Key in keyof Shape & string as Shape[Key] extends { unit: infer Unit extends string }
    ? `${Key}${Unit}`
    : Key]: z.output<Shape[Key]>
}

const nameIn = (shape: z.ZodRawShape, key: string): string =>
  `${key}${(shape[key] as Partial<Measured> | undefined)?.unit ?? ''}`

/** The schema of a section: decodes what a file says, encodes what the program sees, all of it required. */
export const section = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.codec(z.strictObject(shape, `a map of ${Object.keys(shape).join(', ')}`), z.custom<Named<Shape>>(), {
    decode: given =>
      Object.fromEntries(
        Object.entries(given).map(([key, value]) => [nameIn(shape, key), value]),
      ) as Named<Shape>,
    encode: named =>
      Object.fromEntries(
        Object.keys(shape).map(key => [key, (named as Record<string, unknown>)[nameIn(shape, key)]]),
      ) as z.output<z.ZodObject<Shape, z.core.$strict>>,
  })
