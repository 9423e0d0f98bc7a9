// Mutations of a valid provider body, as data: the kind of change, and its place as fractions of the whole. One mutation
// fits bodies of any length and can be left out of a case by itself. They are applied to the parsed elements first, then
// to the text.

import type { Random } from '../random.ts'

/** `at` are fractions from 0 to 1: of elements, sections, columns, steps or characters. */
export type Change = { readonly kind: ChangeKind; readonly at: readonly number[]; readonly value: unknown }

type Json = Record<string, unknown>
type ElementChange = (elements: unknown[], at: readonly number[], value: unknown) => void
type TextChange = (text: string, at: readonly number[], value: unknown) => string

const sections = ['minutely_15', 'hourly', 'daily'] as const

/** A placeholder string for JSON text that JSON.stringify never writes. */
const raw = (text: string): string => `@raw:${text}@`
const unraw = (text: string): string =>
  text.replaceAll(/"@raw:(.*?)@"/g, (_, inside: string) => JSON.parse(`"${inside}"`) as string)

const nonsense: readonly unknown[] = [
  8191.9,
  -8191.9,
  8192,
  99_999,
  -273.15,
  101,
  361,
  -1,
  0.5,
  1e308,
  -1e308,
  1e-320,
  2 ** 53,
  null,
  true,
  false,
  '',
  '20.1',
  'NaN',
  [],
  [1],
  {},
  { value: 1 },
  ...[
    '1e400',
    '-1e400',
    'NaN',
    'Infinity',
    '-0',
    '1E2',
    '01',
    '.5',
    '+1',
    '0x1F',
    'undefined',
    '1'.repeat(400),
    '20.1.2',
    "'1'",
  ].map(raw),
]
const names: readonly string[] = [
  '__proto__',
  'constructor',
  'toString',
  'time',
  'length',
  '',
  'x'.repeat(5_000),
  '\u0000',
  '০',
]

const itemAt = <Item>(items: readonly Item[], share = 0): Item | undefined =>
  items[indexAt(items.length, share)]
const indexAt = (length: number, share = 0): number => Math.min(length - 1, Math.floor(share * length))
/** What another change made something else of has nothing to change. */
// A list takes no field such as `length`.
const objectOf = (value: unknown): Json =>
  (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}) as Json
const elementAt = (elements: readonly unknown[], share?: number): Json => objectOf(itemAt(elements, share))
const sectionAt = (elements: readonly unknown[], [element, section]: readonly number[]): Json =>
  objectOf(elementAt(elements, element)[itemAt(sections, section) ?? ''])
const columnAt = (
  elements: readonly unknown[],
  at: readonly number[],
): { of: Json; name: string; column: unknown[] } => {
  const of = sectionAt(elements, at)
  const name = itemAt(Object.keys(of), at[2]) ?? ''
  const column = of[name]
  return { of, name, column: Array.isArray(column) ? column : [] }
}
const later = (label: unknown, minutes: number): unknown => {
  const instant = Date.parse(`${label}Z`)
  if (Number.isNaN(instant)) return label
  return new Date(instant + minutes * 60_000).toISOString().slice(0, String(label).length)
}

const elementChanges = {
  'a value': (elements, at, value) => {
    const { column } = columnAt(elements, at)
    column[indexAt(column.length, at[3])] = value
  },
  'all values of a column': (elements, at, value) => void columnAt(elements, at).column.fill(value),
  'all values of an element': (elements, at, value) => {
    for (const name of sections)
      for (const [key, column] of Object.entries((elementAt(elements, at[0])[name] ?? {}) as Json))
        if (key !== 'time' && Array.isArray(column)) column.fill(value)
  },
  'a column times ten': (elements, at) => {
    const { of, name, column } = columnAt(elements, at)
    of[name] = column.map(value => (typeof value === 'number' ? value * 10 : value))
  },
  'a column that is none': (elements, at, value) => {
    const { of, name } = columnAt(elements, at)
    of[name] = value
  },
  'a column too short': (elements, at) => {
    const { of, name, column } = columnAt(elements, at)
    of[name] = column.slice(0, indexAt(column.length, at[3]))
  },
  'a column too long': (elements, at, value) => void columnAt(elements, at).column.push(value),
  'a column backwards': (elements, at) => void columnAt(elements, at).column.reverse(),
  'a missing column': (elements, at) => {
    const { of, name } = columnAt(elements, at)
    delete of[name]
  },
  'two columns exchanged': (elements, at) => {
    const of = sectionAt(elements, at)
    const [one = '', other = ''] = [itemAt(Object.keys(of), at[2]), itemAt(Object.keys(of), at[3])]
    ;[of[one], of[other]] = [of[other], of[one]]
  },
  'other times': (elements, at) => {
    const of = sectionAt(elements, at)
    const minutes = itemAt([15, -15, 60, -60, 1440, -1440, 7, 525_600, -60 * 24 * 30], at[2]) ?? 0
    if (Array.isArray(of.time)) of.time = of.time.map(label => later(label, minutes))
  },
  'all times later by days': (elements, at) => {
    const minutes = 1440 * (itemAt([1, -1, 2, -2, 365, -7], at[2]) ?? 0)
    for (const name of sections) {
      const of = (elementAt(elements, at[0])[name] ?? {}) as Json
      if (Array.isArray(of.time)) of.time = of.time.map(label => later(label, minutes))
    }
  },
  'a wrong time': (elements, at, value) => {
    const { time } = sectionAt(elements, at)
    if (Array.isArray(time))
      time[indexAt(time.length, at[3])] = itemAt(
        [value, '2026-02-30T25:61', '2026-11-21T06:00Z', 1_763_683_200, '', time[0], 'x'.repeat(10_000)],
        at[2],
      )
  },
  'all shorter': (elements, at) => {
    const of = sectionAt(elements, at)
    for (const [name, column] of Object.entries(of))
      if (Array.isArray(column)) of[name] = column.slice(0, indexAt(column.length, at[2]))
  },
  'all from later on': (elements, at) => {
    const of = sectionAt(elements, at)
    for (const [name, column] of Object.entries(of))
      if (Array.isArray(column)) of[name] = column.slice(indexAt(column.length, at[2]))
  },
  'another unit': (elements, at, value) => {
    const units = objectOf(elementAt(elements, at[0])[`${itemAt(sections, at[1])}_units`])
    const name = itemAt(Object.keys(units), at[2]) ?? ''
    units[name] = itemAt(['°F', 'mph', 'inch', 'undefined', '', 'K', value], at[3])
  },
  'a field': (elements, at, value) => {
    const element = elementAt(elements, at[0])
    element[itemAt(Object.keys(element), at[1]) ?? ''] = value
  },
  'a missing field': (elements, at) => {
    const element = elementAt(elements, at[0])
    delete element[itemAt(Object.keys(element), at[1]) ?? '']
  },
  'a field more': (elements, at, value) => {
    const name = itemAt(names, at[1]) ?? ''
    Object.defineProperty(elementAt(elements, at[0]), name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  },
  'a column more': (elements, at, value) => {
    const name = itemAt(names, at[2]) ?? ''
    Object.defineProperty(sectionAt(elements, at), name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  },
  'another order of fields': (elements, at) => {
    const index = indexAt(elements.length, at[0])
    elements[index] = Object.fromEntries(Object.entries(elementAt(elements, at[0])).toReversed())
  },
  'another offset': (elements, at, value) => {
    elementAt(elements, at[0]).utc_offset_seconds = itemAt([0, 3_600, -21_600, 21_601, 1e9, value], at[1])
  },
  'other coordinates': (elements, at) => {
    const element = elementAt(elements, at[0])
    Object.assign(element, { latitude: -90 + 180 * (at[1] ?? 0), longitude: -180 + 360 * (at[2] ?? 0) })
  },
  'coordinates that are none': (elements, at, value) => {
    elementAt(elements, at[0])[itemAt(['latitude', 'longitude'], at[1]) ?? ''] = value
  },
  'coordinates a little off': (elements, at) => {
    const element = elementAt(elements, at[0])
    element.latitude = Number(element.latitude) + ((at[1] ?? 0) - 0.5) / 10
  },
  'an element less': (elements, at) => void elements.splice(indexAt(elements.length, at[0]), 1),
  'an element twice': (elements, at) =>
    void elements.splice(indexAt(elements.length, at[0]), 0, structuredClone(elementAt(elements, at[1]))),
  'an element in place of another': (elements, at) => {
    elements[indexAt(elements.length, at[0])] = structuredClone(elementAt(elements, at[1]))
  },
  'the weather of another': (elements, at) => {
    const [to, from] = [elementAt(elements, at[0]), elementAt(elements, at[1])]
    for (const name of sections) to[name] = structuredClone(from[name])
  },
  'elements backwards': elements => void elements.reverse(),
  'an element that is none': (elements, at, value) => {
    elements[indexAt(elements.length, at[0])] = value
  },
} satisfies Record<string, ElementChange>

const textChanges = {
  'cut off': (text, at) => text.slice(0, indexAt(text.length, at[0])),
  'something in between': (text, at, value) => {
    const place = indexAt(text.length, at[0])
    return text.slice(0, place) + String(value) + text.slice(place)
  },
  'something less': (text, at) => {
    const place = indexAt(text.length, at[0])
    return text.slice(0, place) + text.slice(place + 1 + indexAt(40, at[1]))
  },
  'something twice': (text, at) => {
    const place = indexAt(text.length, at[0])
    return text.slice(0, place + 1 + indexAt(400, at[1])) + text.slice(place)
  },
  'something before': (text, at) =>
    `${itemAt(['\ufeff', ' \r\n\t', ")]}',\n", '[', '{', '\0', 'null', '//\n'], at[0])}${text}`,
  'something behind': (text, at) =>
    `${text}${itemAt([' \r\n', ']', '}', text, '\0', ',', 'null', 'Unexpected error while streaming data: x'], at[0])}`,
  'a field given twice': (text, at, value) =>
    text.replace(
      '{"latitude"',
      `{"${itemAt(['hourly', 'latitude', 'utc_offset_seconds'], at[0])}":${JSON.stringify(value) ?? 'null'},"latitude"`,
    ),
  'in one list more': text => `[${text}]`,
  'in an object': text => `{"data":${text}}`,
} satisfies Record<string, TextChange>

type ChangeKind = keyof typeof elementChanges | keyof typeof textChanges
const elementKinds = Object.keys(elementChanges) as (keyof typeof elementChanges)[]
const textKinds = Object.keys(textChanges) as (keyof typeof textChanges)[]
export const changeKinds: readonly ChangeKind[] = [...elementKinds, ...textKinds]

export const makeChange = (random: Random, kind: ChangeKind): Change => ({
  kind,
  at: [random.fraction(), random.fraction(), random.fraction(), random.fraction()],
  value: random.pick(nonsense),
})

/** The text of a body with its mutations. @param text of a valid body */
export const changed = (text: string, changes: readonly Change[]): string => {
  const parsed: unknown = JSON.parse(text)
  const elements = Array.isArray(parsed) ? parsed : [parsed]
  for (const { kind, at, value } of changes)
    if (kind in elementChanges)
      elementChanges[kind as keyof typeof elementChanges](elements, at, structuredClone(value))
  const whole = Array.isArray(parsed) || elements.length !== 1 ? elements : elements[0]
  return changes.reduce(
    (now, { kind, at, value }) =>
      kind in textChanges ? textChanges[kind as keyof typeof textChanges](now, at, value) : now,
    unraw(JSON.stringify(whole) ?? ''),
  )
}

export const changeText = ({ kind, at, value }: Change): string =>
  `${kind} at ${at.map(share => share.toFixed(3)).join(' ')}, ${JSON.stringify(value) ?? 'undefined'}`
