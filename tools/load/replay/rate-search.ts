// Looks for the highest rate that a target holds: goes up until a threshold breaks, or halves the rate until one is held, then tries
// between the two. Also what such a rate is compared with, the busiest minute of the traffic. Sends nothing itself.

export type RateVerdict =
  | 'held'
  /** A threshold broke. */
  | 'broken'
  /** The load generator met a limit of its machine, or was the bottleneck when a threshold broke: nothing is known of the target. */
  | 'generator'
  | 'interrupted'

export type FoundRate = {
  readonly held: number | undefined
  readonly broken: number | undefined
  /** `threshold`: the two are close, or the lowest rate broke. `highest`: no rate did. */
  readonly ended: 'threshold' | 'highest' | 'generator' | 'interrupted'
}

// As close as figures of runs of some seconds are to each other.
const closeEnough = 1.1
const highestRate = 100_000

/**
 * @param rates those to begin with, ascending; after the last one the rate doubles
 * @param least the lowest rate that is tried
 * @param tryRate sends at a rate; is called again where one breaks, because a pause of the machine is no limit of the target
 */
export const searchRate = async (
  rates: readonly number[],
  least: number,
  tryRate: (rate: number) => Promise<RateVerdict>,
): Promise<FoundRate> => {
  let held: number | undefined
  let broken: number | undefined
  let rate = rates[0] ?? least
  for (;;) {
    const once = await tryRate(rate)
    const verdict = once === 'held' || once === 'interrupted' ? once : await tryRate(rate)
    if (verdict === 'interrupted' || verdict === 'generator') return { held, broken, ended: verdict }
    if (verdict === 'held') held = rate
    else broken = rate
    if (held !== undefined && broken !== undefined) {
      if (broken / held <= closeEnough) return { held, broken, ended: 'threshold' }
      rate = Number(Math.sqrt(held * broken).toPrecision(3))
    } else if (held !== undefined) {
      if (rate >= highestRate) return { held, broken, ended: 'highest' }
      const last = rate
      rate = rates.find(next => next > last) ?? Math.min(last * 2, highestRate)
    } else {
      if (rate <= least) return { held, broken, ended: 'threshold' }
      rate = Math.max(rate / 2, least)
    }
  }
}

/** The rate of a traffic where it has most requests. */
export type Busiest = { readonly requests: number; readonly seconds: number; readonly rate: number }

const minuteMs = 60_000

/** Of any minute, not of those of the clock; of traffic that is shorter, all of it. Undefined where it is of one instant. */
export const busiestMinute = (at: Float64Array): Busiest | undefined => {
  const span = at.at(-1) ?? 0
  if (span === 0) return undefined
  if (span < minuteMs) {
    // With the gap that would follow the last.
    const seconds = (span + span / (at.length - 1)) / 1000
    return { requests: at.length, seconds, rate: at.length / seconds }
  }
  let requests = 0
  let from = 0
  for (const [i, instant] of at.entries()) {
    while (instant - (at[from] as number) >= minuteMs) from += 1
    requests = Math.max(requests, i - from + 1)
  }
  return { requests, seconds: 60, rate: requests / 60 }
}
