// The names of a list of places as one text, so that a search is a few passes over memory and no walk from place to
// place. What is the same to a reader is for search.ts, which places are asked and in which order for catalogue.ts.

import { fold } from './search.ts'

/** The matches on one page, as positions in the list of places, and how many there are in all. */
export type Matches = Readonly<{ page: readonly number[]; total: number }>

/** Finds the places of which a name holds `wanted`, a folded text that is not empty; in the order of the list. */
export type NameIndex = (wanted: string, limit: number, offset: number) => Matches

// No folded text holds one, so no match spans two names.
const between = '\n'

/** @param named the names of each place of the list */
export const createNameIndex = (named: readonly (readonly string[])[]): NameIndex => {
  const ends: number[] = []
  let end = 0
  const text = named
    .map(names => {
      const folded = names.map(fold).join(between) + between
      end += folded.length
      ends.push(end)
      return folded
    })
    .join('')

  return (wanted, limit, offset) => {
    const page: number[] = []
    let total = 0
    let place = 0
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, ends[place++])) {
      while ((ends[place] ?? text.length) <= at) place += 1
      if (total >= offset && page.length < limit) page.push(place)
      total += 1
    }
    return { page, total }
  }
}
