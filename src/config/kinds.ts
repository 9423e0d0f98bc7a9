// The vocabulary of schema.ts: settings, sections and kinds of values. Each kind has the text for the error "x must be …, got 7",
// and its unit.

import * as z from 'zod'
import { isPrintable } from '../common/outside-text.ts'
import { durations, type Measure, parse, print, sizes } from './units.ts'

/** Secret settings, each with the way to show it. */
export const secrets = z.registry<{ redact(value: string): string }>()

type Liveness = {
  /** The changes that still need a restart, as the end of a sentence. */
  readonly except?: string
  /** Whether a change is one of those. */
  readonly needsRestart?: (before: unknown, after: unknown) => boolean
}

/** The settings that take effect without a restart; a change of any other needs one. */
export const liveSettings = z.registry<Liveness>()

const oneLine = ([text = '']: readonly string[]): string => text.trim().replace(/\s+/g, ' ')

/**
 * A setting: what it may be, its default in the form of a file, and its description as a template. A change of it needs a
 * restart.
 */
export const setting =
  <Kind extends z.ZodType>(kind: Kind, usual: z.input<Kind>) =>
  (description: TemplateStringsArray): z.ZodPrefault<Kind> =>
    z.prefault(kind, usual).describe(oneLine(description))

/** A setting that takes effect without a restart. */
export const live =
  <Kind extends z.ZodType>(kind: Kind, usual: z.input<Kind>, liveness: Liveness = {}) =>
  (description: TemplateStringsArray): z.ZodPrefault<Kind> => {
    const schema = setting(kind, usual)(description)
    liveSettings.add(schema, liveness)
    return schema
  }

/** The unit that the name of a setting ends in within the program. */
type UnitOf<Kind> = Kind extends { unit: infer Unit extends string }
  ? Unit
  : Kind extends z.ZodPrefault<infer Inner>
    ? Inner extends { unit: infer Unit extends string }
      ? Unit
      : ''
    : ''

/** A section as the program sees it: a name that has a unit says so (`freshFor` becomes `freshForMs`). */
type Named<Shape extends z.ZodRawShape> = {
  [Key in keyof Shape & string as `${Key}${UnitOf<Shape[Key]>}`]: z.output<Shape[Key]>
}

const nameIn = (shape: z.ZodRawShape, key: string): string => {
  const kind = shape[key]
  const { unit = '' } = (kind instanceof z.ZodPrefault ? kind.unwrap() : kind) as { unit?: string }
  return `${key}${unit}`
}

/**
 * A section, with its description as a template: decodes what a file says, encodes what the program sees. The only place
 * where settings get another name: those with a unit one that says so.
 */
export const section =
  (description: TemplateStringsArray) =>
  <Shape extends z.ZodRawShape>(shape: Shape) =>
    z
      .codec(z.strictObject(shape, `a map of ${Object.keys(shape).join(', ')}`), z.custom<Named<Shape>>(), {
        decode: given =>
          Object.fromEntries(
            Object.entries(given).map(([key, value]) => [nameIn(shape, key), value]),
          ) as Named<Shape>,
        encode: named =>
          Object.fromEntries(
            Object.keys(shape).map(key => [key, (named as Record<string, unknown>)[nameIn(shape, key)]]),
          ) as z.output<z.ZodObject<Shape, z.core.$strict>>,
      })
      .prefault({} as never)
      .describe(oneLine(description))

/** Text that fits a pattern and, where a pattern is not enough, a test. */
export const text = (allowed: string, pattern = /\S/, accepts: (value: string) => boolean = () => true) =>
  z
    .string(allowed)
    .regex(pattern, { error: allowed, abort: true })
    .refine(isPrintable, { error: `${allowed}, without control characters`, abort: true })
    .refine(accepts, { error: allowed, abort: true })

/** true or false, and no other word for them. */
export const flag = () => z.boolean('true or false')

/** true, false or a share between the two. */
export const flagOrShare = () => {
  const allowed = 'true, false or a number from 0 to 1'
  return z.union([flag(), z.number().min(0, allowed).max(1, allowed)], allowed)
}

/** One of the given words. */
export const oneOf = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, `one of ${words.join(', ')}`)

/** A whole number within bounds; a note adds what a bound means. */
export const whole = (min: number, max: number, note = '') => {
  const allowed = `a whole number from ${min} to ${max}${note}`
  return z.int(allowed).min(min, allowed).max(max, allowed)
}

/** A number within bounds, with decimals if need be. */
export const decimal = (min: number, max: number) => {
  const allowed = `a number from ${min} to ${max}`
  return z.number(allowed).min(min, allowed).max(max, allowed)
}

const quantity = <Unit extends string>(unit: Unit, measure: Measure, min: string, max: string) => {
  const range = `a ${measure.noun} from ${min} to ${max}`
  const allowed = (given: unknown): string =>
    /^[0-9.]+$/.test(String(given))
      ? `${range}: add the unit, as in ${measure.usual.map(name => `${given}${name}`).join(' or ')}`
      : `${range}, such as ${measure.examples}`
  const error = ({ input }: { input?: unknown }) => allowed(input)
  const isWithin = (given: string): boolean => {
    try {
      const value = parse(given, measure)
      return value >= parse(min, measure) && value <= parse(max, measure)
    } catch {
      return false
    }
  }
  const written = z
    .string({ error })
    .regex(measure.pattern, { error, abort: true })
    .refine(isWithin, { error })
  const codec = z.codec(written, z.number(), {
    decode: given => parse(given, measure),
    encode: value => print(value, measure),
  })
  return Object.assign(codec, { unit })
}

/** A duration within bounds, as milliseconds under a name that ends in Ms. */
export const duration = (min: string, max: string) => quantity('Ms', durations, min, max)

/** A size within bounds, as bytes under a name that ends in Bytes. */
export const sized = (min: string, max: string) => quantity('Bytes', sizes, min, max)
