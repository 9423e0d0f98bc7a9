// Hostile texts of config files: random values at every setting, and what YAML allows that a gateway must survive. Pure, from a
// random stream; configuration.ts gives them to the product.

import { settings } from '../../src/config/tree.ts'
import type { Random } from '../random.ts'

type Kind = (random: Random) => string

const values: readonly Kind[] = [
  random => String(random.between(-5, 70_000)),
  random =>
    random.pick([
      '1e999',
      '-1e999',
      '.nan',
      '-0',
      '0x7fffffffffffffff',
      '9'.repeat(400),
      '1_000',
      '0o17',
      '1e-320',
    ]),
  random =>
    random.pick(['true', 'null', '~', '""', '[]', '{}', '[[]]', '{a: {b: c}}', '- x', '? x', '*none', '<<']),
  random => `${random.between(0, 99_999)}${random.pick(['s', 'ms', 'm', 'h', 'd', 'MiB', 'GiB', ' years'])}`,
  random => JSON.stringify(random.bytes(random.between(0, 300)).toString('latin1')),
  random =>
    `!!${random.pick(['binary', 'set', 'omap', 'timestamp', 'str', 'int', 'js/function', 'map'])} ${random.pick(['aGk=', '2001-01-01', '{a, b}', 'x'])}`,
  random => `[${Array.from({ length: random.between(1, 200) }, (_, i) => i).join(', ')}]`,
  random =>
    random.pick([
      'http://u:p@h',
      '/dev/zero',
      '/dev/null',
      '..',
      '\u0000',
      '__proto__',
      'constructor',
      '\u202e',
    ]),
]
const value: Kind = random => random.pick(values)(random)

const nested = (path: readonly string[], text: string): string =>
  `${path.map((key, i) => `${'  '.repeat(i)}${key}:`).join('\n')} ${text}`

const one: Kind = random => nested(random.pick(settings).path, value(random))
const some: Kind = random => Array.from({ length: random.between(1, 12) }, () => one(random)).join('\n')
const name: Kind = random =>
  random.pick([
    '__proto__',
    'constructor',
    'toString',
    '"\\0"',
    '? [a]\n',
    '<<',
    '*a',
    '""',
    'x'.repeat(random.between(1, 2_000)),
    `serv${random.between(0, 99)}er`,
  ])

const good = (random: Random): string =>
  `log:\n  level: ${random.pick(['info', 'warn', 'debug'])}\nquota:\n  tiers:\n    free: ${random.between(1, 9_999)}\n`

const kinds: Readonly<Record<string, Kind>> = {
  'a right one': good,
  'a value': one,
  values: some,
  'unknown names': random =>
    Array.from({ length: random.between(1, 3_000) }, () => `${name(random)}: 1`).join('\n'),
  'unknown settings': random =>
    nested([...random.pick(settings).path.slice(0, -1), name(random)], value(random)),
  'repeated keys': random => `${good(random)}${good(random)}`.repeat(random.between(1, 200)),
  merges: random => {
    const width = random.between(1, 4)
    const depth = random.between(1, 60)
    const of = (i: number) => `[${Array(width).fill(`*a${i}`).join(', ')}]`
    const maps = Array.from(
      { length: depth },
      (_, i) => `x-${i + 1}: &a${i + 1} {<<: ${of(i)}, t${i}: ${i + 1}}`,
    )
    return `x-0: &a0 {free: 1}\n${maps.join('\n')}\nquota: {tiers: {<<: *a${random.between(0, depth + 1)}}}`
  },
  aliases: random => {
    const depth = random.between(1, 40)
    const lists = Array.from({ length: depth }, (_, i) => `x-${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}]`)
    return `x-0: &a0 x\n${lists.join('\n')}\n${nested(random.pick(settings).path, `*a${depth}`)}`
  },
  'itself inside': random =>
    `quota: &a {tiers: &b {${random.pick(['<<: *b', '<<: *a', '<<: [*b, *a]', 'free: *b', 'free: *a'])}}}`,
  depth: random => {
    const many = random.between(1, 20_000)
    return `${random.pick(['', 'quota: ', 'x-a: '])}${random
      .pick(['[', '{a: ', '- ', '? ', '!!map ', '&a '])
      .repeat(many)}${random.pick(['', 'x', ']'.repeat(many)])}`
  },
  sizes: random =>
    random
      .pick(['#\n', '\n', ' ', ':', '- a\n', '---\n', 'a,', '\t', '%', '!', '\r', '\u0000'])
      .repeat(random.between(1, 300_000)),
  documents: random =>
    `%YAML ${random.pick(['1.1', '1.2', '9.9'])}\n---\n${some(random)}\n${random.pick(['', '---\n', '...\n'])}`,
}

const textKinds: readonly string[] = Object.keys(kinds)

export type ConfigText = { readonly kind: string; readonly change: string; readonly bytes: Buffer }

const changes: Readonly<Record<string, (random: Random, bytes: Buffer) => Buffer>> = {
  'as it is': (_, bytes) => bytes,
  'with CRLF': (_, bytes) => Buffer.from(bytes.toString().replaceAll('\n', '\r\n')),
  'with a mark': (random, bytes) =>
    Buffer.concat([Buffer.from(random.pick(['efbbbf', 'feff', 'fffe']), 'hex'), bytes]),
  'cut off': (random, bytes) => bytes.subarray(0, random.between(0, bytes.length)),
  'with other bytes': (random, bytes) => {
    const changed = Buffer.from(bytes)
    for (let i = random.between(1, 8); i > 0 && changed.length > 0; i--)
      changed[random.between(0, changed.length - 1)] = random.pick([
        0, 0x22, 0x26, 0x2a, 0x5b, 0x7b, 0x80, 0xc3, 0xff,
      ])
    return changed
  },
}

export const makeConfigText = (random: Random): ConfigText => {
  const kind = random.pick(textKinds)
  // Most as they are: what a change breaks is refused by the first step.
  const change = random.chance(0.6) ? 'as it is' : random.pick(Object.keys(changes))
  const bytes = changes[change]?.(random, Buffer.from(kinds[kind]?.(random) ?? '')) ?? Buffer.alloc(0)
  return { kind, change, bytes }
}
