// Part of promise 3: what a list says of its weather follows from the loads of its places. It was modified when the oldest was loaded, and
// is fresh until the first of them ends. Answers for one of the places show when that was, and so do other lists of the same loads.

import type { Answer, SaidByProvider } from '../history.ts'
import { type Facts, isoOf, second } from './facts.ts'
import { begunAt, type Loaded, oneEnd } from './loads.ts'
import { isListed } from './paths.ts'
import type { Rule } from './rule.ts'
import { isOnlySource, sourcedIn } from './served.ts'

type LoadedList = Loaded & { readonly all: readonly SaidByProvider[] }

/** @param single the answers for one place */
export const listsOfLoads = (facts: Facts, single: readonly Loaded[], report: Parameters<Rule>[1]): void => {
  // Who reads by another clock may say another instant.
  if (facts.skewSpan > 0) return
  const known = new Map(single.map(({ said, modified }) => [said, modified]))
  for (const same of Map.groupBy(listsIn(facts), ({ cell }) => cell).values()) {
    const modified = Math.max(...same.map(each => each.modified))
    for (const one of same) {
      const fault = modifiedFault(facts, one, known)
      if (fault) report.broken(one.answer, fault)
      else if (one.modified !== modified)
        report.broken(
          one.answer,
          `last-modified ${isoOf(one.modified)}, and others of its loads have ${isoOf(modified)}`,
        )
    }
    oneEnd(facts, same, modified, report)
  }
}

/** Lists of which each place has weather that no other load brought; those without a body by their tag. */
const listsIn = (facts: Facts): LoadedList[] => {
  const placesOf = (answer: Answer): number =>
    [.../(\d+) (?:hit|stale|miss)/g[Symbol.matchAll](answer.headers['cache-status'] ?? '')].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    )
  const byTag = new Map<string, Pick<LoadedList, 'all' | 'said' | 'cell'>>()
  const sourced = sourcedIn(facts).filter(({ answer }) => isListed(answer))
  for (const [answer, places] of Map.groupBy(sourced, each => each.answer)) {
    const isWhole = places.length === placesOf(answer) && places.every(each => isOnlySource(facts, each))
    if (!isWhole) continue
    const all = [...new Set(places.map(({ said }) => said))].toSorted((one, other) => one.seq - other.seq)
    const cell = places
      .map(each => `${each.said.seq} ${each.cell}`)
      .toSorted()
      .join()
    byTag.set(answer.headers.etag ?? '', { all, said: all[0] as SaidByProvider, cell })
  }
  return facts.answers.flatMap(answer => {
    const { status, sent, at, headers } = answer
    const source = byTag.get(headers.etag ?? '')
    if ((status !== 200 && status !== 304) || !isListed(answer) || !source) return []
    const modified = Date.parse(headers['last-modified'] ?? '')
    return [{ answer, ...source, modified, from: sent.at, to: at }]
  })
}

const modifiedFault = (
  facts: Facts,
  { all, modified }: LoadedList,
  known: ReadonlyMap<SaidByProvider, number>,
): string | undefined => {
  const bounds = all.map((said): readonly [number, number] => {
    const instant = known.get(said)
    return instant === undefined ? [begunAt(facts, said) - second, said.arrivedAt] : [instant, instant]
  })
  const [least, most] = [0, 1].map(i => Math.min(...bounds.map(each => each[i] ?? 0))) as [number, number]
  return modified >= least && modified <= most
    ? undefined
    : `last-modified ${isoOf(modified)}, and its oldest place was loaded ${isoOf(least)} to ${isoOf(most)}`
}
