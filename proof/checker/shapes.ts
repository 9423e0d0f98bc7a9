// Shapes of JSON: functions that say what is wrong with a value, undefined for nothing.

import { isDeepStrictEqual } from 'node:util'

export type Shape = (value: unknown) => string | undefined

export const given = (value: unknown): string => JSON.stringify(value)?.slice(0, 60) ?? String(value)

export const that =
  (is: (value: unknown) => boolean, what: string): Shape =>
  value =>
    is(value) ? undefined : `${given(value)} is no ${what}`

/** This value; of objects and lists the first part that is another is said. */
export const exactly =
  (wanted: unknown): Shape =>
  value => {
    if (isDeepStrictEqual(value, wanted)) return undefined
    const isContainer = [value, wanted].every(each => typeof each === 'object' && each !== null)
    if (!isContainer || Array.isArray(value) !== Array.isArray(wanted))
      return `${given(value)} in place of ${given(wanted)}`
    const [own, right] = [value, wanted] as Record<string, unknown>[]
    const names = new Set([...Object.keys(right ?? {}), ...Object.keys(own ?? {})])
    const name = [...names].find(each => !isDeepStrictEqual(own?.[each], right?.[each])) ?? ''
    return `${name}: ${exactly(right?.[name])(own?.[name])}`
  }

/** An object of these fields and no others. */
export const fields =
  (shapes: Readonly<Record<string, Shape>>): Shape =>
  value => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return `${given(value)} is no object`
    const object = value as Record<string, unknown>
    const more = Object.keys(object).find(name => !(name in shapes))
    if (more !== undefined) return `no rule of the checker is about ${more}`
    for (const [name, shape] of Object.entries(shapes)) {
      if (!(name in object)) return `it lacks ${name}`
      const fault = shape(object[name])
      if (fault) return `${name}: ${fault}`
    }
    return undefined
  }
