// Without it a WMO code could lack its text, or an icon that consumers draw could be renamed.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { isWithin, ranges } from '../../src/weather/ranges.ts'
import { iconOf, icons, weatherTextOf, weatherWords } from '../../src/weather/weather-words.ts'

const codes = Array.from({ length: 200 }, (_, code) => code).filter(code =>
  isWithin(ranges.weather_code, code),
)

t.test('every code that a timeline may have is in the table, and no other', async t => {
  t.strictSame(Object.keys(weatherWords).map(Number), codes)
  t.equal(codes.length, 28)
})

t.test('texts differ, and are written in their script and in one encoding', async t => {
  for (const [language, script] of [
    ['en', /^[A-Z][a-z]+(?: [a-z]+)*$/],
    ['bn', /^[\p{Script=Bengali} ]+$/u],
  ] as const) {
    const texts = codes.map(code => weatherTextOf(code, language) ?? '')
    for (const text of texts) {
      t.match(text, script)
      t.equal(text, text.normalize('NFC'))
    }
    t.equal(new Set(texts).size, codes.length)
  }
})

t.test('an icon is one of a few names, with day and night where it shows the sky', async t => {
  for (const code of codes)
    for (const isDay of [0, 1, undefined]) t.ok(icons.includes(iconOf(code, isDay) ?? ''), `${code}`)
  t.strictSame([iconOf(2, 1), iconOf(2, 0)], ['partly-cloudy-day', 'partly-cloudy-night'])
  t.strictSame(
    [iconOf(0, null), iconOf(0, undefined)],
    [null, 'clear-day'],
    'of a whole day, that of the day',
  )
  t.strictSame([iconOf(3, 1), iconOf(3, 0), iconOf(3, null)], ['overcast', 'overcast', 'overcast'])
})

t.test('what the provider does not have has neither text nor icon', async t => {
  for (const code of [null, 40, 1.5]) t.strictSame([weatherTextOf(code, 'bn'), iconOf(code, 1)], [null, null])
})

t.test('docs/api.md has each code with its texts and its icon', async t => {
  const page = readFileSync('docs/api.md', 'utf8')
  const rows = [...page.matchAll(/^\| (\d+) \| ([^|]+) \| ([^|]+) \| `([a-z-]+)`(?:, `([a-z-]+)`)? \|$/gm)]
  t.strictSame(
    rows.map(([, code, en, bn, day, night]) => [Number(code), en, bn, day, night ?? day]),
    codes.map(code => [
      code,
      weatherTextOf(code, 'en'),
      weatherTextOf(code, 'bn'),
      iconOf(code, 1),
      iconOf(code, 0),
    ]),
  )
})
