// The parameters of a request, read strictly: what is malformed is a 400 that names the parameter, what was received
// and what is allowed. Pure; knows the shapes of parameters and not what they select.

import { type LocationType, locationTypes } from '../catalogue/location.ts'
import { badRequest } from './problem.ts'
import { sentences } from './sentences.ts'

export type Language = 'bn' | 'en'

export type Query<Name extends string> = Partial<Record<Name, string>>

/** The named parameters of a query. Others are ignored; one of these given twice is refused. */
export const queryOf = <Name extends string>(query: string, names: readonly Name[]): Query<Name> => {
  const found: Query<Name> = {}
  if (query === '') return found
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=')
    const name = decoded(equals === -1 ? pair : pair.slice(0, equals))
    if (name === undefined || !isOneOf(names, name)) continue
    const given = equals === -1 ? '' : pair.slice(equals + 1)
    const value = decoded(given)
    if (value === undefined) throw badRequest(sentences.parameter.notEncoded(name, given))
    if (found[name] !== undefined) throw badRequest(sentences.parameter.twice(name))
    found[name] = value
  }
  return found
}

// Undefined for what is not percent-encoded UTF-8.
const decoded = (part: string): string | undefined => {
  if (!part.includes('%') && !part.includes('+')) return part
  try {
    return decodeURIComponent(part.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

const isOneOf = <Name extends string>(names: readonly Name[], given: string): given is Name =>
  (names as readonly string[]).includes(given)

export const locationTypeOf = (given: string | undefined): LocationType => {
  if (given !== undefined && isOneOf(locationTypes, given)) return given
  throw badRequest(sentences.parameter.type(given, locationTypes))
}

export const languageOf = (given: string | undefined): Language => {
  if (given === undefined) return 'bn'
  if (given !== 'bn' && given !== 'en') throw badRequest(sentences.parameter.language(given))
  return given
}

/** A whole number in decimal digits within min..max, or `fallback` when absent. */
export const wholeNumberOf = (
  name: string,
  given: string | undefined,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): number => {
  if (given === undefined) return fallback
  const value = /^\d+$/.test(given) ? Number(given) : Number.NaN
  if (value >= min && value <= max) return value
  throw badRequest(sentences.parameter.wholeNumber(name, given, min, max))
}

/** A plain decimal number of degrees inside a range that includes both ends. */
export const degreesOf = (
  name: 'lat' | 'lng',
  given: string,
  { min, max, area }: { min: number; max: number; area: string },
): number => {
  const value = /^[+-]?\d+(\.\d+)?$/.test(given) ? Number(given) : Number.NaN
  if (Number.isNaN(value)) throw badRequest(sentences.parameter.degrees(name, given, min, max))
  if (value < min || value > max)
    throw badRequest(sentences.parameter.outOfBounds(name, given, area, min, max))
  // Number('-0') would otherwise be sent back as it came.
  return value + 0
}

const longestSearch = 100

export const searchTextOf = (given: string | undefined): string => {
  const text = (given ?? '').trim()
  const length = [...text].length
  if (length > longestSearch) throw badRequest(sentences.parameter.longSearch(text, length, longestSearch))
  return text
}
