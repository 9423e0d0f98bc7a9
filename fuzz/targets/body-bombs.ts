// Bodies that cost far more to parse than to send: long, deep, or large once unzipped. They stay within the gateway's limits
// for a provider, or exceed them slightly.

import type { Random } from '../random.ts'

export type Bomb = { readonly kind: string; readonly megabytes: number }

const million = 1024 * 1024

const makers: Readonly<Record<string, (bytes: number, right: string) => string>> = {
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

export const bombKinds = Object.keys(makers)

export const makeBomb = (random: Random, kind: string): Bomb => ({
  kind,
  megabytes: random.pick([1, 1, 4, 4, 16, 60, 70]),
})

/** The text of a body. @param right the text of one right element */
export const bombText = ({ kind, megabytes }: Bomb, right: string): string =>
  makers[kind]?.(megabytes * million, right) ?? ''
