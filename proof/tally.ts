// Sums up what was checked: how many histories exercised and broke each promise. As text, and as a table of Markdown.

import { counted, tableText } from '../fuzz/summary.ts'
import type { Judged } from './lane-process.ts'
import { promiseNumbers, promises, shownBy } from './promises.ts'

/** Everything that a run found. */
export type Tally = {
  readonly seconds: number
  readonly judged: readonly Judged[]
  /** Seeds that could not be checked. */
  readonly failed: readonly { readonly seed: number; readonly why: string }[]
}

export const hasBroken = ({ verdict, stalledMs }: Judged): boolean =>
  stalledMs === undefined && verdict.violations.length > 0

export type Summary = ReturnType<typeof summaryOf>

export const summaryOf = ({ seconds, judged, failed }: Tally) => {
  const valid = judged.filter(({ stalledMs }) => stalledMs === undefined)
  const kinds: Record<string, number> = {}
  for (const { store, hasProcesses } of valid)
    for (const kind of [store, ...(hasProcesses ? ['processes'] : [])]) kinds[kind] = (kinds[kind] ?? 0) + 1
  const sum = (of: (one: Judged) => number): number => valid.reduce((total, one) => total + of(one), 0)
  return {
    seeds: valid.length,
    requests: sum(({ requests }) => requests),
    steps: sum(({ steps }) => steps),
    /** How many histories had each kind of store, and gateways in separate processes. */
    kinds,
    seconds: Math.round(seconds * 10) / 10,
    promises: promiseNumbers.map(promise => ({
      promise,
      sentence: promises[promise],
      histories: sum(({ verdict }) => ((verdict.exercised[promise] ?? 0) > 0 ? 1 : 0)),
      times: sum(({ verdict }) => verdict.exercised[promise] ?? 0),
      broken: valid.flatMap(({ seed, verdict }) =>
        verdict.violations.some(violation => violation.promise === promise) ? [seed] : [],
      ),
    })),
    faulty: valid.filter(hasBroken),
    /** They broke promises while the machine stood still: no evidence. */
    disturbed: judged.filter(({ stalledMs }) => stalledMs !== undefined),
    failed,
  }
}

export const headOf = (summary: Summary): string => {
  const { seeds, requests, steps, seconds, kinds, faulty, disturbed, failed } = summary
  const held =
    faulty.length + failed.length === 0
      ? seeds === 0
        ? 'none was finished'
        : 'every promise held'
      : `${faulty.length} broke a promise, ${failed.length} could not be checked`
  const faults = disturbed.length === 0 ? held : `${held} (${disturbed.length} more disturbed by the machine)`
  const of = (kind: string): string => counted(kinds[kind] ?? 0)
  const rate = Math.round((seeds / Math.max(1, seconds)) * 3_600)
  return `${counted(seeds)} histories of ${counted(steps)} steps and ${counted(requests)} requests in ${counted(Math.round(seconds))} s (${counted(rate)} an hour); ${faults}. ${of('redis')} on one Redis, ${of('sentinel')} behind Sentinel, ${of('cluster')} on a cluster, ${of('embedded')} on the embedded store; in ${of('processes')} each gateway was a separate process.`
}

export const tableOf = (summary: Summary): string =>
  tableText([
    ['', 'promise', 'histories', 'times', 'broken in', 'tests'],
    ['--:', '---', '--:', '--:', '--:', '---'],
    ...summary.promises.map(({ promise, sentence, histories, times, broken }) => [
      ...[String(promise), sentence, counted(histories), counted(times), counted(broken.length)],
      shownBy[promise].map(name => `\`${name}\``).join(', '),
    ]),
  ])

const faultText = ({ seed, verdict, kept = 'nowhere', smallest }: Judged): string => {
  const seen = verdict.violations.map(
    ({ promise, detail }) => `  ${promise}. ${promises[promise]}\n     seen: ${detail}\n`,
  )
  const shrunk = smallest ? `; ${smallest.steps} steps in ${smallest.file}` : ''
  return `seed ${seed}:\n${seen.join('')}  kept: ${kept}${shrunk}\n  repeat: npm run proof -- --seed ${seed} --verbose\n`
}

export const faultsText = ({ faulty, disturbed, failed }: Summary): string =>
  [
    ...faulty.map(faultText),
    ...disturbed.map(
      ({ seed, stalledMs }) =>
        `seed ${seed} is no evidence: the machine stood still for ${stalledMs} ms, in each of the tries\n`,
    ),
    ...failed.map(({ seed, why }) => `seed ${seed} could not be checked: ${why}\n`),
  ].join('\n')
