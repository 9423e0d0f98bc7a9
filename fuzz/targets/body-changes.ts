// Changes of a valid provider body, as data: the kind of change, and its place as shares of the whole. One change fits bodies of
// any length and can be left out of a case by itself. They are applied to the parsed elements first, then to the text. And bodies
// that cost far more to parse than to send.

import fc, { type Arbitrary } from 'fast-check'
import { indexAt, itemAt, share, words } from '../target.ts'

/** `at`: of elements, sections, columns, steps or characters. */
export type Change = { readonly kind: string; readonly at: readonly number[]; readonly value: unknown }

type Json = Record<string, unknown>
const sections = ['minutely_15', 'hourly', 'daily'] as const

/** A placeholder string for JSON text that JSON.stringify never writes. */
const raw = (text: string): string => `@raw:${text}@`
const unraw = (text: string): string =>
  text.replaceAll(/"@raw:(.*?)@"/g, (_, inside: string) => JSON.parse(`"${inside}"`) as string)

const nonsense = fc.oneof(
  fc.constantFrom(8191.9, -8191.9, 8192, 99_999, -273.15, 101, 361, -1, 0.5, 1e308, -1e308, 1e-320, 2 ** 53),
  fc.constantFrom(null, true, false, '', '20.1', 'NaN', [], [1], {}, { value: 1 }),
  fc
    .constantFrom(
      '1'.repeat(400),
      ...words("1e400 -1e400 NaN Infinity -0 1E2 01 .5 +1 0x1F undefined 20.1.2 '1'"),
    )
    .map(raw),
)
const names = ['', 'x'.repeat(5_000), '\u0000', '০', ...words('__proto__ constructor toString time length')]

// What another change made something else of has nothing to change. A list takes no field such as `length`.
const objectOf = (value: unknown): Json =>
  (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}) as Json
const elementAt = (elements: readonly unknown[], place?: number): Json => objectOf(itemAt(elements, place))
const columnsOf = (element: Json): Json[] => sections.map(name => objectOf(element[name]))
const add = (to: Json, name: string, value: unknown): unknown =>
  Object.defineProperty(to, name, { value, enumerable: true, configurable: true, writable: true })
const set = (of: Json | unknown[], name: string | number, value: unknown): unknown =>
  Object.assign(of, { [name]: value })
const later = (label: unknown, minutes: number): unknown => {
  const instant = Date.parse(`${label}Z`)
  if (Number.isNaN(instant)) return label
  return new Date(instant + minutes * 60_000).toISOString().slice(0, String(label).length)
}
const move = (section: Json, minutes: number): void => {
  if (Array.isArray(section.time)) section.time = section.time.map(label => later(label, minutes))
}
const wrongTimes = ['2026-02-30T25:61', '2026-11-21T06:00Z', 1_763_683_200, '', 'x'.repeat(10_000)]

/** What a change is applied to: the places of `at` name an element, a section of it, a column and a step. */
type Given = {
  readonly elements: unknown[]
  readonly index: number
  readonly element: Json
  /** A copy of the element of the second place. */
  readonly other: Json
  readonly of: Json
  readonly name: string
  readonly otherName: string
  readonly column: unknown[]
  readonly step: number
  readonly at: readonly number[]
  readonly value: unknown
}
const daysApart = [1, -1, 2, -2, 365, -7]
const minutesApart = [15, -15, 60, -60, 1440, -1440, 7, 525_600, -60 * 24 * 30]
/** All columns of a section, cut at a place. */
const cutColumns = (of: Json, cut: (column: unknown[]) => unknown[]): void => {
  for (const [name, column] of Object.entries(of)) if (Array.isArray(column)) of[name] = cut(column)
}
const fieldOf = (element: Json, place?: number): string => itemAt(Object.keys(element), place) ?? ''

const valueChanges: Readonly<Record<string, (given: Given) => unknown>> = {
  'a value': ({ column, step, value }) => set(column, step, value),
  'all values of a column': ({ column, value }) => column.fill(value),
  'a column times ten': ({ of, name, column }) =>
    set(
      of,
      name,
      column.map(value => (typeof value === 'number' ? value * 10 : value)),
    ),
  'a column that is none': ({ of, name, value }) => set(of, name, value),
  'a column too short': ({ of, name, column, step }) => set(of, name, column.slice(0, step)),
  'a column too long': ({ column, value }) => column.push(value),
  'a column backwards': ({ column }) => column.reverse(),
  'a missing column': ({ of, name }) => delete of[name],
  'two columns exchanged': ({ of, name, otherName }) =>
    Object.assign(of, { [name]: of[otherName], [otherName]: of[name] }),
  'other times': ({ of, at }) => move(of, itemAt(minutesApart, at[2]) ?? 0),
  'a wrong time': ({ of: { time }, at, value }) =>
    Array.isArray(time) &&
    set(time, indexAt(time.length, at[3]), itemAt([value, time[0], ...wrongTimes], at[2])),
  'all shorter': ({ of, at }) => cutColumns(of, column => column.slice(0, indexAt(column.length, at[2]))),
  'all from later on': ({ of, at }) => cutColumns(of, column => column.slice(indexAt(column.length, at[2]))),
  'a column more': ({ of, at, value }) => add(of, itemAt(names, at[2]) ?? '', value),
  'all values of an element': ({ element, value }) => {
    for (const section of columnsOf(element))
      for (const [key, column] of Object.entries(section))
        if (key !== 'time' && Array.isArray(column)) column.fill(value)
  },
  'all times later by days': ({ element, at }) => {
    for (const section of columnsOf(element)) move(section, 1440 * (itemAt(daysApart, at[2]) ?? 0))
  },
  'another unit': ({ element, at, value }) => {
    const units = objectOf(element[`${itemAt(sections, at[1])}_units`])
    set(units, fieldOf(units, at[2]), itemAt([...words('°F mph inch undefined K'), '', value], at[3]))
  },
  'a field': ({ element, at, value }) => set(element, fieldOf(element, at[1]), value),
  'a missing field': ({ element, at }) => delete element[fieldOf(element, at[1])],
  'a field more': ({ element, at, value }) => add(element, itemAt(names, at[1]) ?? '', value),
  'another offset': ({ element, at, value }) =>
    set(element, 'utc_offset_seconds', itemAt([0, 3_600, -21_600, 21_601, 1e9, value], at[1])),
  'other coordinates': ({ element, at: [, north = 0, east = 0] }) =>
    Object.assign(element, { latitude: -90 + 180 * north, longitude: -180 + 360 * east }),
  'coordinates that are none': ({ element, at, value }) =>
    set(element, itemAt(['latitude', 'longitude'], at[1]) ?? '', value),
  'coordinates a little off': ({ element, at: [, place = 0] }) =>
    set(element, 'latitude', Number(element.latitude) + (place - 0.5) / 10),
  'another order of fields': ({ elements, index, element }) =>
    set(elements, index, Object.fromEntries(Object.entries(element).toReversed())),
  'an element less': ({ elements, index }) => elements.splice(index, 1),
  'an element twice': ({ elements, index, other }) => elements.splice(index, 0, other),
  'an element in place of another': ({ elements, index, other }) => set(elements, index, other),
  'the weather of another': ({ element, other }) => {
    for (const name of sections) element[name] = other[name]
  },
  'elements backwards': ({ elements }) => elements.reverse(),
  'an element that is none': ({ elements, index, value }) => set(elements, index, value),
}

const befores = ['\ufeff', ' \r\n\t', ")]}',\n", '[', '{', '\0', 'null', '//\n']
const behinds = [' \r\n', ']', '}', '\0', ',', 'null', '[]', 'Unexpected error while streaming data: x']
type TextChange = (text: string, place: number, at: readonly number[], value: unknown) => string
/** `place`: the character of the first place. */
const textChanges: Readonly<Record<string, TextChange>> = {
  'cut off': (text, place) => text.slice(0, place),
  'something in between': (text, place, _, value) => text.slice(0, place) + String(value) + text.slice(place),
  'something less': (text, place, at) => text.slice(0, place) + text.slice(place + 1 + indexAt(40, at[1])),
  'something twice': (text, place, at) => text.slice(0, place + 1 + indexAt(400, at[1])) + text.slice(place),
  'something before': (text, _, at) => `${itemAt(befores, at[0])}${text}`,
  'something behind': (text, _, at) => `${text}${itemAt([...behinds, text], at[0])}`,
  'a field given twice': (text, _, at, value) => {
    const name = itemAt(['hourly', 'latitude', 'utc_offset_seconds'], at[0])
    return text.replace('{"latitude"', `{"${name}":${JSON.stringify(value)},"latitude"`)
  },
  'in one list more': text => `[${text}]`,
  'in an object': text => `{"data":${text}}`,
}

export const changeKinds: readonly string[] = [...Object.keys(valueChanges), ...Object.keys(textChanges)]

export const changesOf = (...kinds: string[]): Arbitrary<Change> =>
  fc.record({
    kind: fc.constantFrom(...kinds),
    at: fc.array(share, { minLength: 4, maxLength: 4 }),
    value: nonsense,
  })

const changeElements = (elements: unknown[], { kind, at, value }: Change): void => {
  const element = elementAt(elements, at[0])
  const of = objectOf(element[itemAt(sections, at[1]) ?? ''])
  const name = fieldOf(of, at[2])
  const column = Array.isArray(of[name]) ? of[name] : []
  valueChanges[kind]?.({
    ...{ elements, element, of, name, column, at },
    index: indexAt(elements.length, at[0]),
    other: structuredClone(elementAt(elements, at[1])),
    otherName: fieldOf(of, at[3]),
    step: indexAt(column.length, at[3]),
    value: structuredClone(value),
  })
}

/** The text of a body with its changes. @param text of a valid body */
export const changed = (text: string, changes: readonly Change[]): string => {
  const parsed: unknown = JSON.parse(text)
  const elements = Array.isArray(parsed) ? parsed : [parsed]
  for (const change of changes) changeElements(elements, change)
  const whole = Array.isArray(parsed) || elements.length !== 1 ? elements : elements[0]
  return changes.reduce(
    (now, { kind, at, value }) => textChanges[kind]?.(now, indexAt(now.length, at[0]), at, value) ?? now,
    unraw(JSON.stringify(whole) ?? ''),
  )
}

export const changeText = ({ kind, at, value }: Change): string =>
  `${kind} at ${at.map(place => place.toFixed(3)).join(' ')}, ${JSON.stringify(value)}`

const bombMakers: Readonly<Record<string, (bytes: number, right: string) => string>> = {
  'a list of zeros': bytes => `[${'0,'.repeat(bytes / 2)}0]`,
  'lists in lists': bytes => '['.repeat(bytes),
  'lists in lists, closed': bytes => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'lists in a list': bytes => `[${'[],'.repeat(bytes / 3)}[]]`,
  'objects in objects': bytes => '{"a":'.repeat(bytes / 5),
  'objects in objects, closed': bytes => `${'{"a":'.repeat(bytes / 6)}1${'}'.repeat(bytes / 6)}`,
  'objects in a list': bytes => `[${'{},'.repeat(bytes / 3)}{}]`,
  'a long string': bytes => `"${'x'.repeat(bytes)}"`,
  'a long string of escapes': bytes => `"${'\\u0041'.repeat(bytes / 6)}"`,
  'a long number': bytes => '1'.repeat(bytes),
  'many fields': bytes => `{${Array.from({ length: bytes / 14 }, (_, i) => `"k${i}":0`).join(',')}}`,
  blanks: bytes => ' '.repeat(bytes),
  commas: bytes => `[${','.repeat(bytes)}]`,
  quotes: bytes => `[${'"",'.repeat(bytes / 3)}""]`,
  'a column of zeros': (bytes, right) =>
    right.replace(/"temperature_2m":\[/, start => `${start}${'0,'.repeat(bytes / 2)}`),
  'many right elements': (bytes, right) =>
    `[${Array.from({ length: Math.ceil(bytes / right.length) }, () => right).join(',')}]`,
}

/** Within the gateway's limits for a provider, or slightly beyond. */
export type Bomb = { readonly kind: string; readonly megabytes: number }
export const bombs: Arbitrary<Bomb> = fc.record({
  kind: fc.constantFrom(...Object.keys(bombMakers)),
  megabytes: fc.constantFrom(1, 1, 4, 4, 16, 60, 70),
})

/** The text of a body. @param right the text of one right element */
export const bombText = ({ kind, megabytes }: Bomb, right: string): string =>
  bombMakers[kind]?.(megabytes * 1024 * 1024, right) ?? ''
