// The charts of one run, or of several runs over each other: rate, latency by percentile and over time, hit share, age of the
// weather, provider weight, delays of the generator.

import type { Html } from '../../page/html.ts'
import { histogramOf, percentileOf, plottedPercentiles } from './histogram.ts'
import { type Line, type LineChart, lineChart } from './line-chart.ts'
import type { Figures } from './page-frame.ts'
import type { ReplayResult, Step } from './result.ts'
import type { SayResult } from './result-words.ts'
import {
  durationScale,
  linearScale,
  logScale,
  ninesScale,
  rangeScale,
  type Scale,
  shareScale,
} from './scale.ts'
import { type ShownSteps, shownSteps, timeAxis } from './shown-steps.ts'

/** The words and figures of a page. */
export type Writing = { readonly say: SayResult; readonly figures: Figures }

/** A run and the name of its lines; without one, lines have the name of what they show. */
export type NamedRun = { readonly run: ReplayResult; readonly name?: string }

type Drawn = { readonly run: ReplayResult; readonly name: string | undefined; readonly shown: ShownSteps }
type Measure = {
  readonly name: string
  readonly of: (step: Step, shown: ShownSteps) => number | null
} & Pick<Line, 'isArea' | 'isBad'>

/** Charts over time. @param most the steps of a chart at most */
export const chartsOf = (runs: readonly NamedRun[], { say, figures }: Writing, most = 288) => {
  const drawn: Drawn[] = runs.map(({ run, name }) => ({ run, name, shown: shownSteps(run, most) }))
  // The axis is that of the longest run.
  const longest = drawn.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0]
  const axis = longest ? timeAxis(longest.run, longest.shown, figures) : undefined
  const stepNote = longest
    ? say(
        longest.run.kind === 'rehearsal' ? 'byMovedClock' : 'stepNote',
        figures.duration(longest.shown.seconds),
      )
    : undefined

  const overTime = (
    title: string,
    measures: readonly Measure[],
    scaleOf: (values: readonly number[], write: (value: number) => string) => Scale,
    write: (value: number) => string,
    more: Pick<LineChart, 'note' | 'level'> & { readonly writeTick?: (value: number) => string } = {},
  ): Html => {
    if (!axis) return ''
    const lines = drawn.flatMap(({ shown, name }) =>
      measures.map(measure => ({
        ...measure,
        name: name === undefined ? measure.name : measures.length === 1 ? name : `${name}, ${measure.name}`,
        // Where the steps of runs differ in length, each value stands at the step that holds its time.
        values: axis.values.map(at => {
          const step = shown.steps[Math.floor(at / shown.seconds)]
          return step === undefined ? null : measure.of(step, shown)
        }),
      })),
    )
    const values = [
      ...lines.flatMap(line => line.values.filter(value => value !== null)),
      ...(more.level ? [more.level.value] : []),
    ]
    if (values.length === 0) return ''
    return lineChart({
      title,
      note: stepNote,
      ...more,
      x: { label: say('time'), ...axis },
      y: { scale: scaleOf(values, more.writeTick ?? write), write },
      lines,
      tableTitle: say('values'),
    })
  }

  const perSecond =
    (name: 'due' | 'answered') =>
    (step: Step, { seconds }: ShownSteps): number =>
      step[name] / seconds
  const share = (name: 'hits' | 'stale') => (step: Step) => {
    const weather = step.hits + step.stale + step.misses
    return weather === 0 ? null : step[name] / weather
  }
  const latency = (value: number): string => figures.latency(value / 1000)
  const shareAxis = (_: readonly number[], write: (value: number) => string): Scale => shareScale(write)
  const isLong = (longest ? lengthOf(longest) : 0) >= 7_200
  const spans = isLong ? 3_600 : 60
  const weightLimit = ({ run }: Drawn): number | undefined =>
    run.provider?.windows.find(({ span }) => span === (isLong ? 'hour' : 'minute'))?.limit ?? undefined

  return {
    rate: () =>
      overTime(
        say('rateOverTime'),
        [
          { name: say('achieved'), of: perSecond('answered'), isArea: drawn.length === 1 },
          ...(drawn.length === 1 ? [{ name: say('asked'), of: perSecond('due') }] : []),
        ],
        linearScale,
        figures.measured,
      ),
    latency: () =>
      overTime(
        say('latencyOverTime'),
        drawn.length === 1
          ? [
              { name: 'p50', of: step => step.p50 },
              { name: 'p99', of: step => step.p99 },
            ]
          : [{ name: 'p99', of: step => step.p99 }],
        logScale,
        latency,
        { note: say('latencyOverTimeNote'), writeTick: latencyTick({ say, figures }) },
      ),
    hits: () =>
      overTime(
        say('hitShareOverTime'),
        [
          { name: say('hit'), of: share('hits'), isArea: drawn.length === 1 },
          ...(drawn.length === 1 ? [{ name: say('stale'), of: share('stale') }] : []),
        ],
        drawn.length === 1 ? shareAxis : rangeScale,
        figures.share,
      ),
    age: () =>
      overTime(
        say('age'),
        [
          { name: say('ageMedian'), of: step => step.age50, isArea: drawn.length === 1 },
          ...(drawn.length === 1 ? [{ name: say('ageMax'), of: (step: Step) => step.ageMax }] : []),
        ],
        durationScale,
        figures.duration,
      ),
    weight: () => {
      const limit = drawn[0] && weightLimit(drawn[0])
      // Of the steps up to this one that lie within the span, to be held against its limit.
      const perSpan = ({ at, weight }: Step, { steps, seconds }: ShownSteps): number | null => {
        if (weight === null) return null
        if (seconds > spans) return (weight / seconds) * spans
        const last = Math.round(at / seconds)
        return steps
          .slice(Math.max(0, last + 1 - Math.round(spans / seconds)), last + 1)
          .reduce((sum, step) => sum + (step.weight ?? 0), 0)
      }
      const most = Math.max(
        0,
        ...drawn.flatMap(({ shown }) => shown.steps.map(step => perSpan(step, shown) ?? 0)),
      )
      // A limit far above all would leave the weight a line on the ground.
      const level =
        limit !== undefined && limit < most * 2
          ? { name: say('limitOf', say(isLong ? 'hour' : 'minute')), value: limit }
          : undefined
      return overTime(
        say(isLong ? 'weightPerHour' : 'weightPerMinute'),
        [{ name: say('weight'), of: perSpan, isArea: drawn.length === 1 }],
        linearScale,
        figures.measured,
        { level },
      )
    },
    lateness: () =>
      runs.every(({ run }) => run.steps.every(({ late }) => !late))
        ? ''
        : overTime(
            say('latenessOverTime'),
            [{ name: say('delay'), of: step => step.late, isArea: true }],
            linearScale,
            latency,
            { writeTick: latencyTick({ say, figures }) },
          ),
    percentiles: () => percentileChart(runs, { say, figures }),
  }
}

const lengthOf = ({ shown }: Drawn): number => shown.steps.length * shown.seconds

/** A round latency in ms, without the digits of a measured one. */
const latencyTick =
  ({ say, figures }: Writing) =>
  (value: number): string =>
    value < 1000 ? say('ms', figures.plain(value)) : say('s', figures.plain(value / 1000))

const percentileChart = (runs: readonly NamedRun[], { say, figures }: Writing): Html => {
  const read = runs
    .map(({ run, name }) => ({ name: name ?? say('latency'), histogram: histogramOf(run.histogram) }))
    .filter(({ histogram }) => histogram.totalCount > 0)
  if (read.length === 0) return ''
  const percents = plottedPercentiles(Math.max(...read.map(({ histogram }) => histogram.totalCount)))
  const lines = read.map(({ name, histogram }) => ({
    name,
    values: percents.map(percent => percentileOf(histogram, percent)),
  }))
  const values = lines.flatMap(line => line.values)
  const write = (value: number): string => figures.latency(value / 1000)
  const scale = Math.max(...values) > 20 * Math.min(...values) ? logScale : linearScale
  const percentText = (percent: number): string => `${figures.plain(percent)}%`
  return lineChart({
    title: say('percentilePlot'),
    x: {
      label: say('percentile'),
      values: percents,
      scale: ninesScale(percents.at(-1) ?? 90, percentText),
      write: percentText,
    },
    y: { scale: scale(values, latencyTick({ say, figures })), write },
    lines,
    tableTitle: say('values'),
  })
}
