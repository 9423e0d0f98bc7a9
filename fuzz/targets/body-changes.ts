// Changes of a valid provider body, as data: the kind of change, and its place as shares of the whole. One change fits bodies of
// any length and can be left out of a case by itself. They are applied to the parsed elements first, then to the text. And bodies
// that cost far more to parse than to send.

import fc, { type Arbitrary } from 'fast-check'
import { indexAt, itemAt, share, words } from '../target.ts'

/** `at`: of an element, a section, a column and a step, or of characters. */
export type Change = { readonly kind: string; readonly at: readonly number[]; readonly value: unknown }

type Json = Record<string, unknown>
const sections = ['minutely_15', 'hourly', 'daily'] as const

/** A placeholder string for JSON text that JSON.stringify never writes. */
const raw = (text: string): string => `@raw:${text}@`
const unraw = (text: string): string =>
  text.replaceAll(/"@raw:(.*?)@"/g, (_, inside: string) => JSON.parse(`"${inside}"`) as string)

const numbers = [8191.9, -8191.9, 8192, 99_999, -273.15, 101, 361, -1, 0.5, 1e308, -1e308, 1e-320, 2 ** 53]
const unwritten = words("1e400 -1e400 NaN Infinity -0 1E2 01 .5 +1 0x1F undefined 20.1.2 '1'")
const nonsense = fc.oneof(
  fc.constantFrom(...numbers),
  fc.constantFrom(null, true, false, '', '20.1', 'NaN', [], [1], {}, { value: 1 }),
  fc.constantFrom('1'.repeat(400), ...unwritten).map(raw),
)
const names = ['', 'x'.repeat(5_000), '\u0000', '০', ...words('__proto__ constructor toString time length')]

// What another change made something else of has nothing to change. A list takes no field such as `length`.
const objectOf = (value: unknown): Json =>
  (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}) as Json
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const keyAt = (of: Json, place?: number): string => itemAt(Object.keys(of), place) ?? ''
const add = (to: Json, name: string | undefined, value: unknown): unknown =>
  Object.defineProperty(to, name ?? '', { value, enumerable: true, configurable: true, writable: true })
const later = (minutes: number) => (label: unknown) => {
  const instant = Date.parse(`${label}Z`)
  if (Number.isNaN(instant)) return label
  return new Date(instant + minutes * 60_000).toISOString().slice(0, String(label).length)
}
const wrongTimes = ['2026-02-30T25:61', '2026-11-21T06:00Z', 1_763_683_200, '', 'x'.repeat(10_000)]
const daysApart = [1, -1, 2, -2, 365, -7]
const minutesApart = [15, -15, 60, -60, 1440, -1440, 7, 525_600, -60 * 24 * 30]
const offsets = [0, 3_600, -21_600, 21_601, 1e9]

/** Of a column: returns another one. */
type OfColumn = (column: unknown[], place: number, value: unknown) => unknown
const columnChanges: Readonly<Record<string, OfColumn>> = {
  'a value': (column, place, value) =>
    column.map((old, i) => (i === indexAt(column.length, place) ? value : old)),
  'all values of a column': (column, _, value) => column.map(() => value),
  'a column times ten': column => column.map(value => (typeof value === 'number' ? value * 10 : value)),
  'a column that is none': (_column, _, value) => value,
  'a column too short': (column, place) => column.slice(0, indexAt(column.length, place)),
  'a column too long': (column, _, value) => [...column, value],
  'a column backwards': column => column.toReversed(),
}
/** Of the times of a section. */
const timeChanges: Readonly<Record<string, OfColumn>> = {
  'other times': (time, place) => time.map(later(itemAt(minutesApart, place) ?? 0)),
  'a wrong time': (time, place, value) =>
    time.with(indexAt(time.length, (place * 97) % 1), itemAt([value, time[0], ...wrongTimes], place)),
}
/** Of all columns of a section. */
const sectionChanges: Readonly<Record<string, OfColumn>> = {
  'all shorter': (column, place) => column.slice(0, indexAt(column.length, place)),
  'all from later on': (column, place) => column.slice(indexAt(column.length, place)),
}
/** `of`: the section of the second place, `name`: the column of the third. */
type Place = {
  readonly of: Json
  readonly name: string
  readonly at: readonly number[]
  readonly value: unknown
}
const elementChanges: Readonly<Record<string, (element: Json, place: Place, other: Json) => unknown>> = {
  'a missing column': (_, { of, name }) => delete of[name],
  'two columns exchanged': (_, { of, name, at }) =>
    Object.assign(of, { [name]: of[keyAt(of, at[3])], [keyAt(of, at[3])]: of[name] }),
  'a column more': (_, { of, at, value }) => add(of, itemAt(names, at[2]), value),
  'all values of an element': (element, { value }) => {
    for (const section of sections.map(name => objectOf(element[name])))
      for (const [key, column] of Object.entries(section)) if (key !== 'time') listOf(column).fill(value)
  },
  'all times later by days': (element, { at }) => {
    for (const { time } of sections.map(name => objectOf(element[name])))
      for (const [i, label] of listOf(time).entries())
        listOf(time)[i] = later(1440 * (itemAt(daysApart, at[2]) ?? 0))(label)
  },
  'another unit': (element, { at, value }) => {
    const units = objectOf(element[`${itemAt(sections, at[1])}_units`])
    add(units, keyAt(units, at[2]), itemAt([...words('°F mph inch undefined K'), '', value], at[3]))
  },
  'a field': (element, { at, value }) => add(element, keyAt(element, at[1]), value),
  'a missing field': (element, { at }) => delete element[keyAt(element, at[1])],
  'a field more': (element, { at, value }) => add(element, itemAt(names, at[1]), value),
  'another offset': (element, { at, value }) =>
    add(element, 'utc_offset_seconds', itemAt([...offsets, value], at[1])),
  'other coordinates': (element, { at: [, north = 0, east = 0] }) =>
    Object.assign(element, { latitude: -90 + 180 * north, longitude: -180 + 360 * east }),
  'coordinates that are none': (element, { at, value }) =>
    add(element, itemAt(['latitude', 'longitude'], at[1]), value),
  'coordinates a little off': (element, { at: [, place = 0] }) =>
    add(element, 'latitude', Number(element.latitude) + (place - 0.5) / 10),
  'the weather of another': (element, _, other) => {
    for (const name of sections) element[name] = other[name]
  },
}
type OfList = (elements: unknown[], index: number, other: Json, value: unknown) => unknown[]
const listChanges: Readonly<Record<string, OfList>> = {
  'another order of fields': (all, index) =>
    all.map((one, i) => (i === index ? Object.fromEntries(Object.entries(objectOf(one)).toReversed()) : one)),
  'an element less': (all, index) => all.toSpliced(index, 1),
  'an element twice': (all, index, other) => all.toSpliced(index, 0, other),
  'an element in place of another': (all, index, other) => all.toSpliced(index, 1, other),
  'elements backwards': all => all.toReversed(),
  'an element that is none': (all, index, _, value) => all.toSpliced(index, 1, value),
}

const befores = ['\ufeff', ' \r\n\t', ")]}',\n", '[', '{', '\0', 'null', '//\n']
const behinds = [' \r\n', ']', '}', '\0', ',', 'null', '[]', 'Unexpected error while streaming data: x']
/** `at`: the character of the first place, and the second place. */
const textChanges: Readonly<
  Record<string, (text: string, at: number, of: readonly number[], value: unknown) => string>
> = {
  'cut off': (text, at) => text.slice(0, at),
  'something in between': (text, at, _, value) => text.slice(0, at) + String(value) + text.slice(at),
  'something less': (text, at, of) => text.slice(0, at) + text.slice(at + 1 + indexAt(40, of[1])),
  'something twice': (text, at, of) => text.slice(0, at + 1 + indexAt(400, of[1])) + text.slice(at),
  'something before': (text, _, of) => `${itemAt(befores, of[0])}${text}`,
  'something behind': (text, _, of) => `${text}${itemAt([...behinds, text], of[0])}`,
  'a field given twice': (text, _, of, value) => {
    const name = itemAt(['hourly', 'latitude', 'utc_offset_seconds'], of[0])
    return text.replace('{"latitude"', `{"${name}":${JSON.stringify(value)},"latitude"`)
  },
  'in one list more': text => `[${text}]`,
  'in an object': text => `{"data":${text}}`,
}

const all = [columnChanges, timeChanges, sectionChanges, elementChanges, listChanges, textChanges]
export const changeKinds: readonly string[] = all.flatMap(some => Object.keys(some))

export const changesOf = (...kinds: readonly string[]): Arbitrary<Change> =>
  fc.record({
    kind: fc.constantFrom(...kinds),
    at: fc.array(share, { minLength: 4, maxLength: 4 }),
    value: nonsense,
  })

const changeElements = (elements: unknown[], { kind, at, value: given }: Change): unknown[] => {
  const value = structuredClone(given)
  const element = objectOf(itemAt(elements, at[0]))
  const other = structuredClone(objectOf(itemAt(elements, at[1])))
  const of = objectOf(element[itemAt(sections, at[1]) ?? ''])
  const name = keyAt(of, at[2])
  if (kind in columnChanges) of[name] = columnChanges[kind]?.(listOf(of[name]), at[3] ?? 0, value)
  if (kind in timeChanges && listOf(of.time).length > 0)
    of.time = timeChanges[kind]?.(listOf(of.time), at[2] ?? 0, value)
  for (const [key, column] of Object.entries(of))
    if (kind in sectionChanges && Array.isArray(column))
      of[key] = sectionChanges[kind]?.(column, at[2] ?? 0, value)
  elementChanges[kind]?.(element, { of, name, at, value }, other)
  return listChanges[kind]?.(elements, indexAt(elements.length, at[0]), other, value) ?? elements
}

/** The text of a body with its changes. @param text of a valid body */
export const changed = (text: string, changes: readonly Change[]): string => {
  const parsed: unknown = JSON.parse(text)
  const elements = changes.reduce(changeElements, Array.isArray(parsed) ? parsed : [parsed])
  const whole = Array.isArray(parsed) || elements.length !== 1 ? elements : elements[0]
  return changes.reduce(
    (now, { kind, at, value }) => textChanges[kind]?.(now, indexAt(now.length, at[0]), at, value) ?? now,
    unraw(JSON.stringify(whole) ?? ''),
  )
}

export const changeText = ({ kind, at, value }: Change): string =>
  `${kind} at ${at.map(place => place.toFixed(3)).join(' ')}, ${JSON.stringify(value)}`

/** What is repeated to so many bytes, with what stands before and behind it. */
const bombParts: Readonly<Record<string, readonly [before: string, each: string, behind: string]>> = {
  'a list of zeros': ['[', '0,', '0]'],
  'lists in lists': ['', '[', ''],
  'lists in a list': ['[', '[],', '[]]'],
  'objects in objects': ['', '{"a":', ''],
  'objects in a list': ['[', '{},', '{}]'],
  'a long string': ['"', 'x', '"'],
  'a long string of escapes': ['"', '\\u0041', '"'],
  'a long number': ['', '1', ''],
  'many fields': ['{', '"k#":0,', '"k":0}'],
  blanks: ['', ' ', ''],
  commas: ['[', ',', ']'],
  quotes: ['[', '"",', '""]'],
  'a column of zeros': ['<column>', '0,', ''],
  'many right elements': ['[', '<right>,', '{}]'],
}

/** Within the gateway's limits for a provider, or slightly beyond. */
export type Bomb = { readonly kind: string; readonly megabytes: number }
export const bombs: Arbitrary<Bomb> = fc.record({
  kind: fc.constantFrom(...Object.keys(bombParts)),
  megabytes: fc.constantFrom(1, 1, 4, 4, 16, 60, 70),
})

/** The text of a body. @param right the text of one right element */
export const bombText = ({ kind, megabytes }: Bomb, right: string): string => {
  const [before = '', part = '', behind = ''] = bombParts[kind] ?? []
  const each = part.replace('<right>', () => right)
  const times = Math.ceil((megabytes * 2 ** 20) / (each.length + (each.includes('#') ? 6 : 0)))
  const many = each.includes('#')
    ? Array.from({ length: times }, (_, i) => each.replace('#', String(i))).join('')
    : each.repeat(times)
  if (before === '<column>') return right.replace(/"temperature_2m":\[/, start => start + many)
  return before + many + behind
}
