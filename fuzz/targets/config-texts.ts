// Hostile texts of config files: random values at every setting, and what YAML allows that a gateway must survive;
// configuration.ts gives them to the product.

import fc, { type Arbitrary } from 'fast-check'
import { settings } from '../../src/config/tree.ts'
import { chance, indexAt, joined, noise, parts, pick, several, share, upTo, words } from '../target.ts'

type Text = Arbitrary<string>
const lines = (of: Text, least: number, most: number): Text =>
  several(of, least, most).map(all => all.join('\n'))

const value: Text = fc.oneof(
  upTo(-5, 70_000).map(String),
  pick('9'.repeat(400), ...words('1e999 -1e999 .nan -0 0x7fffffffffffffff 1_000 0o17 1e-320')),
  pick('[[]]', '{a: {b: c}}', '- x', '? x', ...words('true null ~ "" [] {} *none <<')),
  joined(upTo(0, 99_999).map(String), pick(' years', ...words('s ms m h d MiB GiB'))),
  noise(0, 300).map(text => JSON.stringify(text)),
  joined(
    ...['!!', pick(...words('binary set omap timestamp str int js/function map')), ' '],
    pick('{a, b}', ...words('aGk= 2001-01-01 x')),
  ),
  upTo(1, 200).map(many => `[${Array.from({ length: many }, (_, i) => i).join(', ')}]`),
  pick('\u0000', '\u202e', ...words('http://u:p@h /dev/zero /dev/null .. __proto__ constructor')),
)
const name: Text = fc.oneof(
  pick('? [a]\n', ...words('__proto__ constructor toString "\\0" << *a ""')),
  upTo(1, 2_000).map(many => 'x'.repeat(many)),
  upTo(0, 99).map(number => `serv${number}er`),
)
const path = pick(...settings).map(setting => setting.path)
const nested = (names: readonly string[], text: string): string =>
  `${names.map((key, i) => `${'  '.repeat(i)}${key}:`).join('\n')} ${text}`
const one = fc.tuple(path, value).map(([names, text]) => nested(names, text))
const good: Text = fc
  .tuple(pick('info', 'warn', 'debug'), upTo(1, 9_999))
  .map(([level, free]) => `log:\n  level: ${level}\nquota:\n  tiers:\n    free: ${free}\n`)
const counted = (many: number, of: (i: number) => string): string =>
  Array.from({ length: many }, (_, i) => of(i)).join('\n')

const kinds: Readonly<Record<string, Text>> = {
  'a right one': good,
  'a value': one,
  values: lines(one, 1, 12),
  'unknown names': lines(joined(name, ': 1'), 1, 3_000),
  'unknown settings': fc
    .tuple(path, name, value)
    .map(([names, wrong, text]) => nested([...names.slice(0, -1), wrong], text)),
  'repeated keys': fc
    .tuple(good, good, upTo(1, 200))
    .map(([first, then, times]) => (first + then).repeat(times)),
  merges: fc.tuple(upTo(1, 4), upTo(1, 6), share).map(([width, depth, place]) => {
    const of = (i: number): string => `[${Array(width).fill(`*a${i}`).join(', ')}]`
    const maps = counted(depth, i => `x-${i + 1}: &a${i + 1} {<<: ${of(i)}, t${i}: ${i + 1}}`)
    return `x-0: &a0 {free: 1}\n${maps}\nquota: {tiers: {<<: *a${indexAt(depth + 2, place)}}}`
  }),
  aliases: fc.tuple(upTo(1, 40), path).map(([depth, names]) => {
    const lists = counted(depth, i => `x-${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}]`)
    return `x-0: &a0 x\n${lists}\n${nested(names, `*a${depth}`)}`
  }),
  'itself inside': pick('<<: *b', '<<: *a', '<<: [*b, *a]', 'free: *b', 'free: *a').map(
    inside => `quota: &a {tiers: &b {${inside}}}`,
  ),
  depth: fc
    .tuple(
      pick('', 'quota: ', 'x-a: '),
      pick(...parts('[|{a: |- |? |!!map |&a ')),
      upTo(1, 20_000),
      fc.nat(2),
    )
    .map(([begin, each, many, end]) => begin + each.repeat(many) + ['', 'x', ']'.repeat(many)][end]),
  sizes: fc
    .tuple(pick(...parts('#\n|\n| |:|- a\n|---\n|a,|\t|%|!|\r|\u0000')), upTo(1, 300_000))
    .map(([each, many]) => each.repeat(many)),
  documents: joined(
    ...['%YAML ', pick('1.1', '1.2', '9.9'), '\n---\n', lines(one, 1, 12), '\n', pick('', '---\n', '...\n')],
  ),
}

export type ConfigText = { readonly kind: string; readonly bytes: Buffer }

const otherBytes = [0, 0x22, 0x26, 0x2a, 0x5b, 0x7b, 0x80, 0xc3, 0xff]
const changes: Readonly<Record<string, (bytes: Buffer, places: readonly number[]) => Buffer>> = {
  'with CRLF': bytes => Buffer.from(bytes.toString().replaceAll('\n', '\r\n')),
  'with a mark': (bytes, [which]) =>
    Buffer.concat([Buffer.from(['efbbbf', 'feff', 'fffe'][indexAt(3, which)] ?? '', 'hex'), bytes]),
  'cut off': (bytes, [place]) => bytes.subarray(0, indexAt(bytes.length + 1, place)),
  'with other bytes': (bytes, places) => {
    const changed = Buffer.from(bytes)
    for (const [i, place] of places.entries())
      if (changed.length > 0) changed[indexAt(changed.length, place)] = otherBytes[i % otherBytes.length] ?? 0
    return changed
  },
}

/** Most as they are made: what a change breaks is refused by the first step. */
export const configTexts: Arbitrary<ConfigText> = fc
  .tuple(
    pick(...Object.keys(kinds)),
    chance(40),
    pick(...Object.keys(changes)),
    fc.array(share, { minLength: 1, maxLength: 8 }),
  )
  .chain(([kind, isChanged, change, places]) =>
    (kinds[kind] ?? good).map(text => {
      const bytes = Buffer.from(text)
      return isChanged
        ? { kind: `${kind}, ${change}`, bytes: changes[change]?.(bytes, places) ?? bytes }
        : { kind, bytes }
    }),
  )
