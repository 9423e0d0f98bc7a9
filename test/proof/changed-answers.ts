// Other values for the headers and the fields of an answer: likely ones, as a faulty gateway might send them. For tests of the checker.

import type { Answer } from '../../proof/history.ts'

export type Changed = { readonly what: string; readonly answer: Answer }

type Other = (value: string) => string
const shifted =
  (seconds: number): Other =>
  date =>
    new Date(Date.parse(date) + seconds * 1_000).toUTCString()
const instantShifted =
  (seconds: number): Other =>
  date =>
    new Date(Date.parse(date) + seconds * 1_000).toISOString()
const more =
  (by: number): Other =>
  number =>
    String(Number(number) + by)
/** The number behind a name is another. */
const withNumber =
  (name: string, by: number): Other =>
  value =>
    value.replace(new RegExp(`(${name}=)(-?\\d+)`), (_, before, number) => before + (Number(number) + by))
const instead =
  (text: string | RegExp, other: string): Other =>
  value =>
    value.replace(text, other)

// A change of a value that it does not concern leaves the value as it is, and does not count.
const others: Readonly<Record<string, Readonly<Record<string, Other>>>> = {
  'last-modified': {
    '30 s earlier': shifted(-30),
    '5 s earlier': shifted(-5),
    '5 s later': shifted(5),
    'an hour earlier': shifted(-3_600),
  },
  date: { '5 s earlier': shifted(-5), '5 s later': shifted(5) },
  'x-key-expires': { '5 s earlier': instantShifted(-5), '5 s later': instantShifted(5) },
  'cache-control': {
    'a minute more': withNumber('max-age', 60),
    'a minute less': withNumber('max-age', -60),
  },
  'cache-status': {
    'ttl a minute more': withNumber('ttl', 60),
    'ttl a minute less': withNumber('ttl', -60),
    'a miss said as a hit': instead(/fwd=miss; stored; (ttl=\d+)/, 'hit; $1; detail=memory'),
    'a hit said as a miss': instead(/hit; (ttl=\d+); detail=\w+/, 'fwd=miss; stored; $1'),
    'memory said as redis': instead('detail=memory', 'detail=redis'),
    'redis said as memory': instead('detail=redis', 'detail=memory'),
    'another cell': instead(/key="2/, 'key="3'),
    'a list that hit said as stale': instead(/hit; (ttl=.*) hit"/, 'fwd=stale; $1 stale"'),
    'a list that is stale said as a hit': instead(/fwd=stale; (ttl=.*) stale"/, 'hit; $1 hit"'),
  },
  etag: { other: instead(/\w"$/, '_"') },
  'retry-after': { 'one more': more(1), 'ten more': more(10), 'an hour more': more(3_600) },
  'content-length': { 'one more': more(1), 'one less': more(-1) },
  'content-language': { other: value => (value === 'bn' ? 'en' : 'bn') },
  link: { other: withNumber('offset', 1) },
  ratelimit: { 'one left more': withNumber('r', 1), 'ten seconds more': withNumber('t', 10) },
  'ratelimit-policy': { 'one more': withNumber('q', 1) },
}
const usual: Readonly<Record<string, Other>> = {
  other: value => (/^\d+$/.test(value) ? String(Number(value) + 1) : `${value}-`),
}

/** The answer with each change of a header that it has, and with one that no contract has. */
export const withOtherHeaders = (answer: Answer): Changed[] => {
  const { headers } = answer
  const changed = Object.entries(headers).flatMap(([name, value]) =>
    Object.entries(others[name] ?? usual).map(([how, change]) => ({
      name,
      how,
      value,
      other: change(value),
    })),
  )
  return [
    ...changed
      .filter(({ value, other }) => other !== value)
      .map(({ name, how, other }) => ({
        what: `${name}: ${how}`,
        answer: { ...answer, headers: { ...headers, [name]: other } },
      })),
    { what: 'an unknown header', answer: { ...answer, headers: { ...headers, 'x-unknown': '1' } } },
  ]
}

/** The answer with another value in each field of its body, of lists in that of the first item, and with an unknown field. */
export const withOtherBodies = (answer: Answer): Changed[] =>
  answer.body === ''
    ? []
    : othersOf(JSON.parse(answer.body), []).map(([what, body]) => ({
        what,
        answer: { ...answer, body: JSON.stringify(body) },
      }))

const othersOf = (value: unknown, path: readonly string[]): [string, unknown][] => {
  if (path.at(-1) === 'error') return otherSentences(String(value), path.join(' '))
  if (typeof value !== 'object' || value === null) return [[path.join(' '), otherThan(value)]]
  const isList = Array.isArray(value)
  const names = Object.keys(value).slice(0, isList ? 1 : undefined)
  const changed = names.flatMap(name =>
    othersOf((value as Record<string, unknown>)[name], [...path, name]).map(
      ([what, other]): [string, unknown] => [
        what,
        isList ? value.with(Number(name), other) : { ...value, [name]: other },
      ],
    ),
  )
  return isList ? changed : [...changed, [[...path, 'an unknown field'].join(' '), { ...value, unknown: 1 }]]
}

const otherThan = (value: unknown): unknown => {
  if (typeof value === 'number') return value + (Number.isInteger(value) ? 1 : 0.1)
  if (typeof value === 'boolean') return !value
  if (value === null) return 1
  const text = String(value)
  const instant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(instant) ? `${text}x` : new Date(instant + 60_000).toISOString()
}

/** Without words, and with another number, quotation or endpoint. */
const otherSentences = (sentence: string, path: string): [string, unknown][] => [
  [path, 'none'],
  ...[...sentence.matchAll(/(?<!\/v)\d+/g)].map(({ 0: number, index }): [string, unknown] => [
    `${path} ${number}`,
    `${sentence.slice(0, index)}${Number(number) + 1}${sentence.slice(index + number.length)}`,
  ]),
  ...Object.entries({
    'quotes another': sentence.replace('"', '"x'),
    'names another endpoint': sentence.replace(/(endpoint must be )\w+/, '$1location'),
  }).flatMap(([how, other]): [string, unknown][] => (other === sentence ? [] : [[`${path} ${how}`, other]])),
]
