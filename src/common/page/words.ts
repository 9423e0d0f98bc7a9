// Words of a page in both languages: a table of texts for each, with `{0}` and so on for values.

import type { Language } from './figures.js'

export type { Language }

export type Words<Name extends string> = Readonly<Record<Name, string>>

export type Say<Name extends string> = (name: Name, ...values: readonly (string | number)[]) => string

export const sayIn = <Name extends string>(
  words: Readonly<Record<Language, Words<Name>>>,
  language: Language,
): Say<Name> => {
  const texts = words[language]
  return (name, ...values) => texts[name].replaceAll(/\{(\d)\}/g, (_, at) => String(values[Number(at)]))
}
