// The tables of the documented contract: the codes of errors by status, and what the codes of weather mean.

import { readFileSync } from 'node:fs'

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')

/** The codes that an answer of a status may have. */
export const codesOf = (status: number): string[] =>
  page
    .split(/^### /m)
    .filter(section => section.startsWith(`${status}: `))
    .flatMap(section => [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, code = '']) => code))

type Words = { readonly en: string; readonly bn: string; readonly icons: readonly string[] }

const words = new Map(
  [...page.matchAll(/^\| (\d+) \| ([^|]+) \| ([^|]+) \| (`[^|]+`) \|$/gm)].map(
    ([, code, en = '', bn = '', icons = '']): [number, Words] => [
      Number(code),
      { en, bn, icons: [...icons.matchAll(/`([\w-]+)`/g)].map(([, icon = '']) => icon) },
    ],
  ),
)

/** What a code means; null for none. */
export const textOf = (code: unknown, language: string): string | null =>
  words.get(code as number)?.[language === 'en' ? 'en' : 'bn'] ?? null

/** The icon of a code. @param isDay 1 or 0; of a day undefined, which has the icon of the daytime */
export const iconOf = (code: unknown, isDay: unknown): string | null => {
  const [byDay = null, byNight] = words.get(code as number)?.icons ?? []
  if (byNight === undefined || isDay === undefined || isDay === 1) return byDay
  return isDay === 0 ? byNight : null
}
