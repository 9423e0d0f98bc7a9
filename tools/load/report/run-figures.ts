// Figures of runs for pages and commands, and the Pareto-optimal settings.

import type { Figures } from 'abohawa/common/page/figures.js'
import type { ReplayResult } from './result.ts'

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

export const weathersOf = ({ outcomes }: ReplayResult): number =>
  sum([outcomes.hit ?? 0, outcomes.stale ?? 0, outcomes.miss ?? 0])

/** Of the responses with weather; null without any. */
export const shareOf = (run: ReplayResult, outcome: 'hit' | 'stale' | 'miss'): number | null =>
  weathersOf(run) === 0 ? null : (run.outcomes[outcome] ?? 0) / weathersOf(run)

/** Responses a second. */
export const answeredRate = ({
  answered,
  seconds,
}: Pick<ReplayResult['totals'], 'answered' | 'seconds'>): number => answered / Math.max(seconds, 1e-9)

export const sentFor = ({ seconds, sendingSeconds = seconds }: ReplayResult['totals']): number =>
  sendingSeconds

export const failedIn = ({ failed }: Pick<ReplayResult['totals'], 'failed'>): number =>
  sum(Object.values(failed))

/** Requests that were never sent or not answered, and responses with status 500 or above. */
export const errorsIn = (
  totals: Pick<ReplayResult['totals'], 'failed' | 'dropped'>,
  statuses: ReplayResult['statuses'],
): number =>
  totals.dropped +
  failedIn(totals) +
  sum(Object.entries(statuses).map(([status, count]) => (Number(status) >= 500 ? count : 0)))
export const errorsOf = ({ totals, statuses }: ReplayResult): number => errorsIn(totals, statuses)

export const paceText = ({ pace }: ReplayResult, figures: Figures): string => {
  if (pace.mode === 'closed')
    return `closed loop: ${figures.count(pace.connections)} connections, one request each`
  if (pace.mode === 'rate') {
    const { rate } = pace
    return `${(Number.isInteger(rate) ? figures.count : figures.measured)(rate ?? 0)} requests/s, evenly`
  }
  const times =
    pace.speed === null || pace.speed === 1 ? '' : `, ${figures.measured(pace.speed)} times as fast`
  return `as recorded${times}`
}

/**
 * The indexes of the Pareto-optimal ones: no other is at least as good in every figure and better in one.
 * @param each figures, where larger is better
 */
export const paretoOptimal = (each: readonly (readonly number[])[]): ReadonlySet<number> =>
  new Set(
    each.flatMap((own, at) =>
      each.some(
        (other, i) =>
          i !== at &&
          other.every((figure, n) => figure >= (own[n] ?? 0)) &&
          other.some((figure, n) => figure > (own[n] ?? 0)),
      )
        ? []
        : [at],
    ),
  )

/** The paths that differ between sets of settings, and the differing values of each set, such as `freshFor=3h, cellDegrees=0.2`. */
export const differingSettings = (
  all: readonly Readonly<Record<string, string>>[],
): { readonly paths: readonly string[]; readonly names: readonly string[] } => {
  const paths = [...new Set(all.flatMap(Object.keys))].filter(
    path => new Set(all.map(settings => settings[path])).size > 1,
  )
  const names = all.map(settings =>
    paths
      .filter(path => settings[path] !== undefined)
      .map(path => `${paths.length === 1 ? '' : `${path.split('.').at(-1)}=`}${settings[path]}`)
      .join(', '),
  )
  return { paths, names }
}
