// Texts of traffic files in every format: right ones, changed ones, and lines whose faults are known.

import fc, { type Arbitrary } from 'fast-check'
import { indexAt, itemAt, pick, several, share, upTo, weighted, words } from '../target.ts'

const separator = '\n🐵🙈🙉\n'
const line = (more: string): string =>
  `{"level":"info","time":"2026-11-21T06:00:00.000Z","msg":"answered",${more}}\n`
const seeds = {
  'access-log': line(
    '"method":"GET","url":"/api/v1/weather/district/3026","ms":1.5,"status":200,"keyId":"key_1","share":0.5',
  ).repeat(2),
  ndjson:
    '{"at":"2026-11-21T06:00:00Z","method":"GET","path":"/api/v1/weather/district/3026","key":"key_1","accepts":"gzip","status":200,"cell":"23.7,90.4","bytes":5,"ms":1}\n'.repeat(
      2,
    ),
  combined:
    '203.0.113.7 - - [21/Nov/2026:12:00:00 +0600] "GET /api/v1/weather/district/3026 HTTP/1.1" 200 1834 "-" "curl/8" 0.005\n'.repeat(
      2,
    ),
  nginx:
    '203.0.113.7 [2026-11-21T12:00:00+06:00] GET /api/v1/weather/district/3026 200 1834 0.005 127.0.0.1:8081 200 4a1c\n'.repeat(
      2,
    ),
  har: '{"log":{"version":"1.2","entries":[{"startedDateTime":"2026-11-21T06:00:00Z","time":1,"request":{"method":"GET","url":"http://x/api/v1/locations","headers":[{"name":"x","value":"y"}]},"response":{"status":200,"headers":[],"content":{"size":5}}}]}}',
  gor: `1 a1 1439818823587396305 0\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n${separator}2 a1 1439818823587396306 5\nHTTP/1.1 200 OK\r\n\r\n${separator}`,
} as const
export type Format = keyof typeof seeds
export const trafficFormats = Object.keys(seeds) as Format[]

/** What is wrong with a line, and with nothing around it. */
const faultyLines = {
  'access-log': [
    line('"method":null,"url":"/"').trim(),
    line('"method":"GET","url":7').trim(),
    '{"msg":"answered"',
  ],
  ndjson: ['{"at":', '{"at":"yesterday","method":"GET","path":"/"}', 'null', '[]', 'x'],
  combined: ['x', '- - - [40/Foo/2026:12:00:00 +0600] "GET /x HTTP/1.1" 200 1', '"'],
  nginx: ['x', '- [yesterday] GET /x 200 1 0.001 x', '203.0.113.7'],
} as const
type LineFormat = keyof typeof faultyLines

/** How many lines of a counted text are faulty. */
export const faultsIn = (format: Format, text: string): number => {
  const faulty: readonly string[] = faultyLines[format as LineFormat] ?? []
  return text.split('\n').filter(each => faulty.includes(each)).length
}

/** Right lines, at first one, and a known number of faulty ones among them. */
export const countedTexts: Arbitrary<{ readonly format: LineFormat; readonly text: string }> = fc
  .tuple(pick(...(Object.keys(faultyLines) as LineFormat[])), pick(3, 8, 30, 2_000), pick(0, 10, 50, 90))
  .chain(([format, count, percent]) => {
    const [right = ''] = seeds[format].split('\n')
    const each = weighted<string>(
      [100 - percent, fc.constant(right)],
      [percent, pick<string[]>(...faultyLines[format])],
    )
    return several(each, 0, count).map(lines => ({ format, text: `${[right, ...lines].join('\n')}\n` }))
  })

const blows = ['\r\n', ' ', separator, ...words('\\" " [ {"a": ? 1 9. \\ \u0000 \u001b[2J é ,')]
const values = words('null -1 1e999 "x" [null] {"toString":null} 0 1e308 "9999-12-31T23:59:59Z" true []')
type Edit = (text: string) => string
const placeIn = /:(?=["[{\d-])("[^"]*"|\[|\{|[\d.]+)|\d+(?:\.\d+)?/g

/** One change of a text: of a value, a part that is repeated, cut or doubled. */
export const edits: Arbitrary<Edit> = fc
  .tuple(pick(...words('blow less cut repeat insert value digits')), share, upTo(1, 40), share, share)
  .map(([kind, place, length, which, many]) => text => {
    const at = indexAt(text.length, place)
    const [before, part, behind] = [text.slice(0, at), text.slice(at, at + length), text.slice(at + length)]
    const value = itemAt(values, which)
    if (kind === 'blow')
      return before + itemAt(blows, which)?.repeat(itemAt([1, 50, 100_000], many) ?? 1) + part + behind
    if (kind === 'less') return before + behind
    if (kind === 'cut') return before
    if (kind === 'repeat') return before + part + part.repeat(itemAt([1, 1_000], many) ?? 1) + behind
    const found = itemAt([...text.slice(0, 20_000).matchAll(placeIn)], place)
    if (!found || kind === 'insert') return before + value + part + behind
    const other = kind === 'value' ? value : '9'.repeat(itemAt([3, 20, 400], many) ?? 3)
    const begin = found[0].startsWith(':') ? ':' : ''
    return text.slice(0, found.index) + begin + other + text.slice(found.index + found[0].length)
  })

/** A text of a format with some changes. */
export const editedTexts = (format: Format, most: number): Arbitrary<string> =>
  fc
    .array(edits, { minLength: 1, maxLength: most })
    .map(all => all.reduce((text, edit) => edit(text).slice(0, 3_000_000), seeds[format] as string))
