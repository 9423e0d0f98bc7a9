// A search index: the names of places as one text, so that a search is a few passes over memory.

/** The names of a place, and its aliases. */
export type Named = Readonly<{ names: readonly string[]; aliases: readonly string[] }>

/** The position of a place in the list; `alias` is the position of the matching alias if no name matched. */
type Match = Readonly<{ place: number; alias?: number }>

/** The matches on one page, and how many there are in all. */
export type Matches = Readonly<{ page: readonly Match[]; total: number }>

/** Finds the places of which a name or alias holds `wanted`, a folded text that is not empty; in the order of the list. */
export type NameIndex = (wanted: string, limit: number, offset: number) => Matches

// A separator that no folded text contains, so that no match spans two names.
const between = '\n'

/** @param fold the form in which names are compared; `wanted` must be in it */
export const createNameIndex = (named: readonly Named[], fold: (text: string) => string): NameIndex => {
  const aliasStarts: number[] = []
  const ends: number[] = []
  let end = 0
  const textOf = (names: readonly string[]): string => {
    const text = names.map(name => fold(name) + between).join('')
    end += text.length
    return text
  }
  // Names come before aliases, so the first match of a place is in an alias only where no name matches.
  const text = named
    .map(({ names, aliases }) => {
      const first = textOf(names)
      aliasStarts.push(end)
      const folded = aliases.length === 0 ? first : first + textOf(aliases)
      ends.push(end)
      return folded
    })
    .join('')

  const matchAt = (place: number, at: number): Match => {
    const start = aliasStarts[place] as number
    return at < start ? { place } : { place, alias: text.slice(start, at).split(between).length - 1 }
  }

  return (wanted, limit, offset) => {
    const page: Match[] = []
    let total = 0
    let place = 0
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, ends[place++])) {
      while ((ends[place] ?? text.length) <= at) place += 1
      if (total >= offset && page.length < limit) page.push(matchAt(place, at))
      total += 1
    }
    return { page, total }
  }
}
