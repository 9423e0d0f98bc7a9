// Where values lie on an axis, and which of them are written there: linear from zero, logarithmic, percentiles by their nines,
// and time. Drawing is left to the charts.

/** A mark on an axis; `isMinor` ones are left out where there is little room. */
export type Tick = { readonly at: number; readonly text: string; readonly isMinor?: boolean }

export type Scale = {
  /** From 0, the lower or left end, to 1. */
  readonly shareOf: (value: number) => number
  readonly ticks: readonly Tick[]
}

/** About four to six steps of 1, 2 or 5 times a power of ten. */
export const niceStep = (most: number): number => {
  const power = 10 ** Math.floor(Math.log10(most / 4))
  return power * ([1, 2, 5, 10].find(factor => most / (power * factor) <= 6) ?? 10)
}

/** A share of 1 as a length of CSS. */
export const lengthOf = (share: number): string => `${(share * 100).toFixed(2).replace(/\.?0+$/, '')}%`

const bounded = (share: number): number => Math.min(1, Math.max(0, share))

/** From zero to a round number above the largest value. */
export const linearScale = (values: readonly number[], write: (value: number) => string): Scale => {
  const most = Math.max(...values, 0) || 1
  const step = niceStep(most)
  const top = Math.ceil(most / step - 1e-9) * step
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => {
    const at = Number((i * step).toPrecision(12))
    return { at, text: write(at) }
  })
  return { shareOf: value => bounded(value / top), ticks }
}

/** From a round number below the least value to one above the largest; wide enough that noise does not fill it. */
export const rangeScale = (values: readonly number[], write: (value: number) => string): Scale => {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const step = niceStep(Math.max(most - least, Math.abs(most) * 0.02, 1e-9))
  const from = Math.floor(least / step + 1e-9) * step
  const to = Math.max(Math.ceil(most / step - 1e-9) * step, from + step)
  const ticks = Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => {
    const at = Number((from + i * step).toPrecision(12))
    return { at, text: write(at) }
  })
  return { shareOf: value => bounded((value - from) / (to - from)), ticks }
}

/** From 0 to 100 %, with values as shares of 1. */
export const shareScale = (write: (value: number) => string): Scale => ({
  shareOf: bounded,
  ticks: [0, 0.25, 0.5, 0.75, 1].map(at => ({ at, text: write(at) })),
})

/** Logarithmic over the positive values, by 1, 2 and 5 times a power of ten, or by powers where they are many. */
export const logScale = (values: readonly number[], write: (value: number) => string): Scale => {
  const positive = values.filter(value => value > 0)
  const least = positive.length === 0 ? 1 : Math.min(...positive)
  const most = Math.max(least, ...positive)
  const decades = Math.log10(most / least)
  const factors = decades > 2.5 ? [1] : [1, 2, 5]
  const marks: number[] = []
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += 1)
    for (const factor of factors) marks.push(Number((factor * 10 ** power).toPrecision(3)))
  const bottom = marks.findLast(mark => mark <= least * 1.0001) ?? least
  const top = marks.find(mark => mark >= most && mark > bottom) ?? most * 2
  const range = Math.log10(top / bottom)
  return {
    shareOf: value => bounded(value <= bottom ? 0 : Math.log10(value / bottom) / range),
    ticks: marks.filter(mark => mark >= bottom && mark <= top).map(at => ({ at, text: write(at) })),
  }
}

/** Percentiles from 0 to 100, each nine as wide as the one before it: 90, 99, 99.9 and so on. */
export const ninesScale = (highest: number, write: (percentile: number) => string): Scale => {
  const ninesOf = (percentile: number): number => -Math.log10(Math.max(1 - percentile / 100, 1e-9))
  const most = Math.max(1, ninesOf(highest))
  const marks = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999].filter(mark => mark <= highest)
  return {
    shareOf: percentile => bounded(ninesOf(percentile) / most),
    ticks: marks.map(at => ({ at, text: write(at), isMinor: at === 50 })),
  }
}

const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800,
  604_800,
]

/** Durations in seconds from zero, by round times. Of a minute and more they are written without seconds, of days without hours. */
export const durationScale = (values: readonly number[], write: (value: number) => string): Scale => {
  const most = Math.max(...values, 0) || 1
  const least = most > 172_800 ? 86_400 : most > 60 ? 60 : 1
  const step = steps.find(each => each >= least && most / each <= 6) ?? Math.ceil(most / 86_400 / 6) * 86_400
  const count = Math.max(1, Math.ceil(most / step - 1e-9))
  return {
    shareOf: value => bounded(value / (count * step)),
    ticks: Array.from({ length: count + 1 }, (_, i) => ({ at: i * step, text: write(i * step) })),
  }
}

const longestOfMany = 7

/**
 * Time in seconds; ticks on round times.
 * @param offset seconds to add to a value before it is rounded: of the day and zone at zero
 */
export const timeScale = (
  { from, to, offset = 0 }: { readonly from: number; readonly to: number; readonly offset?: number },
  write: (seconds: number) => string,
): Scale => {
  const span = Math.max(to - from, 1e-9)
  const ticksOf = (most: number): Tick[] => {
    const step = steps.find(each => span / each <= most) ?? Math.ceil(span / most)
    const ticks: Tick[] = []
    const first = Math.ceil((from + offset) / step) * step - offset
    for (let at = first; at <= to + 1e-9; at += step)
      ticks.push({ at, text: write(at), isMinor: ticks.length % 2 === 1 })
    return ticks
  }
  const many = ticksOf(8)
  // Two units, such as 1 h 15 min, would run into each other.
  const ticks = many.some(({ text }) => text.length > longestOfMany) ? ticksOf(4) : many
  return { shareOf: value => bounded((value - from) / span), ticks }
}
