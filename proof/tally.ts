// Sums up what was judged: how many histories exercised and broke each promise. As text, JSON and a table of Markdown.

import { counted } from '../fuzz/summary.ts'
import type { Judged } from './lane-process.ts'
import { type PromiseNumber, promiseNumbers, promises, shownBy } from './promises.ts'

type Failed = { readonly seed: number; readonly why: string }

export type Tally = {
  seeds: number
  requests: number
  steps: number
  seconds: number
  readonly histories: Map<PromiseNumber, number>
  readonly times: Map<PromiseNumber, number>
  readonly broken: Map<PromiseNumber, number[]>
  readonly faulty: Judged[]
  /** They broke promises while the machine stood still: no evidence. */
  readonly disturbed: Judged[]
  /** How many histories had each kind of store, and gateways in processes of their own. */
  readonly kinds: Map<string, number>
  readonly failed: Failed[]
}

export const createTally = (): Tally => ({
  seeds: 0,
  requests: 0,
  steps: 0,
  seconds: 0,
  histories: new Map(),
  times: new Map(),
  broken: new Map(),
  faulty: [],
  disturbed: [],
  kinds: new Map(),
  failed: [],
})

export const addTo = (tally: Tally, judged: Judged): void => {
  if (judged.stalledMs !== undefined) {
    tally.disturbed.push(judged)
    return
  }
  tally.seeds += 1
  tally.requests += judged.requests
  tally.steps += judged.steps
  for (const kind of [judged.store, ...(judged.hasProcesses ? ['processes'] : [])])
    tally.kinds.set(kind, (tally.kinds.get(kind) ?? 0) + 1)
  for (const promise of promiseNumbers) {
    const times = judged.verdict.exercised[promise] ?? 0
    if (times > 0) tally.histories.set(promise, (tally.histories.get(promise) ?? 0) + 1)
    tally.times.set(promise, (tally.times.get(promise) ?? 0) + times)
  }
  const broken = new Set(judged.verdict.violations.map(({ promise }) => promise))
  for (const promise of broken) tally.broken.set(promise, [...(tally.broken.get(promise) ?? []), judged.seed])
  if (broken.size > 0) tally.faulty.push(judged)
}

export const hasFailed = ({ faulty, failed }: Tally): boolean => faulty.length + failed.length > 0

export const headOf = ({
  seeds,
  requests,
  steps,
  seconds,
  kinds,
  faulty,
  disturbed,
  failed,
}: Tally): string => {
  const faults =
    faulty.length + failed.length + disturbed.length === 0
      ? 'every promise held'
      : `${faulty.length} broke a promise, ${failed.length} could not be judged, ${disturbed.length} more were disturbed by a machine that stood still`
  const of = (kind: string): string => counted(kinds.get(kind) ?? 0)
  const rate = Math.round((seeds / Math.max(1, seconds)) * 3_600)
  return `${counted(seeds)} histories of ${counted(steps)} steps and ${counted(requests)} requests in ${counted(Math.round(seconds))} s (${counted(rate)} an hour); ${faults}. ${of('redis')} on one Redis, ${of('sentinel')} behind Sentinel, ${of('cluster')} on a cluster, ${of('embedded')} on the embedded store; in ${of('processes')} each gateway was a process of its own.`
}

export const tableOf = ({ histories, times, broken }: Tally): string =>
  [
    ['', 'promise', 'histories', 'times', 'broken in', 'tests'],
    ['--:', '---', '--:', '--:', '--:', '---'],
    ...promiseNumbers.map(promise => [
      String(promise),
      promises[promise],
      counted(histories.get(promise) ?? 0),
      counted(times.get(promise) ?? 0),
      counted(broken.get(promise)?.length ?? 0),
      shownBy[promise].map(name => `\`${name}\``).join(', '),
    ]),
  ]
    .map(cells => `| ${cells.join(' | ')} |`)
    .join('\n')

export const faultsText = ({ faulty, disturbed, failed }: Tally): string =>
  [
    ...faulty.map(
      ({ seed, verdict, kept, smallest }) =>
        `seed ${seed}:\n${verdict.violations.map(({ promise, detail }) => `  ${promise}. ${promises[promise]}\n     seen: ${detail}\n`).join('')}  kept: ${kept ?? 'nowhere'}${smallest ? `; ${smallest.steps} steps in ${smallest.file}` : ''}\n  repeat: npm run proof -- --seed ${seed} --verbose\n`,
    ),
    ...disturbed.map(
      ({ seed, stalledMs }) =>
        `seed ${seed} is no evidence: the machine stood still for ${stalledMs} ms, in each of the tries\n`,
    ),
    ...failed.map(({ seed, why }) => `seed ${seed} could not be judged: ${why}\n`),
  ].join('\n')

export const asJson = (tally: Tally): string =>
  JSON.stringify({
    seeds: tally.seeds,
    requests: tally.requests,
    steps: tally.steps,
    kinds: Object.fromEntries(tally.kinds),
    seconds: Math.round(tally.seconds * 10) / 10,
    promises: promiseNumbers.map(promise => ({
      promise,
      sentence: promises[promise],
      histories: tally.histories.get(promise) ?? 0,
      times: tally.times.get(promise) ?? 0,
      broken: tally.broken.get(promise) ?? [],
    })),
    faulty: tally.faulty,
    disturbed: tally.disturbed,
    failed: tally.failed,
  })
