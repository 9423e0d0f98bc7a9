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

const nonsense: readonly unknown[] = [
  ...[8191.9, -8191.9, 8192, 99_999, -273.15, 101, 361, -1, 0.5, 1e308, -1e308, 1e-320, 2 ** 53],
  ...[null, true, false, '', '20.1', 'NaN', [], [1], {}, { value: 1 }],
  ...words("1e400 -1e400 NaN Infinity -0 1E2 01 .5 +1 0x1F undefined 20.1.2 '1'").map(raw),
  raw('1'.repeat(400)),
]
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

/** A column of a section, by the second and third place; the fourth is a step of it. */
type Column = {
  readonly of: Json
  readonly name: string
  readonly column: unknown[]
  readonly step: number
  readonly other: string
  readonly value: unknown
}
const columnChanges: Readonly<Record<string, (given: Column) => void>> = {
  'a value': ({ column, step, value }) => void set(column, step, value),
  'all values of a column': ({ column, value }) => void column.fill(value),
  'a column times ten': ({ of, name, column }) => {
    of[name] = column.map(value => (typeof value === 'number' ? value * 10 : value))
  },
  'a column that is none': ({ of, name, value }) => void set(of, name, value),
  'a column too short': ({ of, name, column, step }) => void set(of, name, column.slice(0, step)),
  'a column too long': ({ column, value }) => void column.push(value),
  'a column backwards': ({ column }) => void column.reverse(),
  'a missing column': ({ of, name }) => void delete of[name],
  'two columns exchanged': ({ of, name, other }) =>
    void Object.assign(of, { [name]: of[other], [other]: of[name] }),
}

/** The section of the first two places. */
const sectionChanges: Readonly<
  Record<string, (section: Json, at: readonly number[], value: unknown) => void>
> = {
  'other times': (section, at) =>
    move(section, itemAt([15, -15, 60, -60, 1440, -1440, 7, 525_600, -60 * 24 * 30], at[2]) ?? 0),
  'a wrong time': ({ time }, at, value) => {
    if (Array.isArray(time))
      time[indexAt(time.length, at[3])] = itemAt([value, time[0], ...wrongTimes], at[2])
  },
  'all shorter': (section, at) => {
    for (const [name, column] of Object.entries(section))
      if (Array.isArray(column)) section[name] = column.slice(0, indexAt(column.length, at[2]))
  },
  'all from later on': (section, at) => {
    for (const [name, column] of Object.entries(section))
      if (Array.isArray(column)) section[name] = column.slice(indexAt(column.length, at[2]))
  },
  'a column more': (section, at, value) => void add(section, itemAt(names, at[2]) ?? '', value),
}

/** The element of the first place. */
const fieldChanges: Readonly<Record<string, (element: Json, at: readonly number[], value: unknown) => void>> =
  {
    'all values of an element': (element, _, value) => {
      for (const section of columnsOf(element))
        for (const [key, column] of Object.entries(section))
          if (key !== 'time' && Array.isArray(column)) column.fill(value)
    },
    'all times later by days': (element, at) => {
      for (const section of columnsOf(element))
        move(section, 1440 * (itemAt([1, -1, 2, -2, 365, -7], at[2]) ?? 0))
    },
    'another unit': (element, at, value) => {
      const units = objectOf(element[`${itemAt(sections, at[1])}_units`])
      units[itemAt(Object.keys(units), at[2]) ?? ''] = itemAt(
        [...words('°F mph inch undefined K'), '', value],
        at[3],
      )
    },
    'a field': (element, at, value) => void set(element, itemAt(Object.keys(element), at[1]) ?? '', value),
    'a missing field': (element, at) => void delete element[itemAt(Object.keys(element), at[1]) ?? ''],
    'a field more': (element, at, value) => void add(element, itemAt(names, at[1]) ?? '', value),
    'another offset': (element, at, value) => {
      element.utc_offset_seconds = itemAt([0, 3_600, -21_600, 21_601, 1e9, value], at[1])
    },
    'other coordinates': (element, [, north = 0, east = 0]) =>
      void Object.assign(element, { latitude: -90 + 180 * north, longitude: -180 + 360 * east }),
    'coordinates that are none': (element, at, value) =>
      void set(element, itemAt(['latitude', 'longitude'], at[1]) ?? '', value),
    'coordinates a little off': (element, [, place = 0]) =>
      void set(element, 'latitude', Number(element.latitude) + (place - 0.5) / 10),
  }

type ListChange = (elements: unknown[], index: number, other: Json, value: unknown) => void
/** `other`: a copy of the element of the second place. */
const listChanges: Readonly<Record<string, ListChange>> = {
  'another order of fields': (elements, index) =>
    void set(elements, index, Object.fromEntries(Object.entries(objectOf(elements[index])).toReversed())),
  'an element less': (elements, index) => void elements.splice(index, 1),
  'an element twice': (elements, index, other) => void elements.splice(index, 0, other),
  'an element in place of another': (elements, index, other) => void set(elements, index, other),
  'the weather of another': (elements, index, other) => {
    for (const name of sections) objectOf(elements[index])[name] = other[name]
  },
  'elements backwards': elements => void elements.reverse(),
  'an element that is none': (elements, index, _, value) => void set(elements, index, value),
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

export const changeKinds: readonly string[] = [
  columnChanges,
  sectionChanges,
  fieldChanges,
  listChanges,
  textChanges,
].flatMap(all => Object.keys(all))

export const changesOf = (...kinds: string[]): Arbitrary<Change> =>
  fc.record({
    kind: fc.constantFrom(...kinds),
    at: fc.array(share, { minLength: 4, maxLength: 4 }),
    value: fc.constantFrom(...nonsense),
  })

const changeElements = (elements: unknown[], { kind, at, value: shared }: Change): void => {
  const value = structuredClone(shared)
  const element = elementAt(elements, at[0])
  const section = objectOf(element[itemAt(sections, at[1]) ?? ''])
  const names = Object.keys(section)
  const name = itemAt(names, at[2]) ?? ''
  const column = Array.isArray(section[name]) ? section[name] : []
  const step = indexAt(column.length, at[3])
  columnChanges[kind]?.({ of: section, name, column, step, other: itemAt(names, at[3]) ?? '', value })
  sectionChanges[kind]?.(section, at, value)
  fieldChanges[kind]?.(element, at, value)
  listChanges[kind]?.(
    elements,
    indexAt(elements.length, at[0]),
    structuredClone(elementAt(elements, at[1])),
    value,
  )
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
