// Finds the highest rate that a target holds: doubles the rate until a threshold breaks, or halves it until one holds, then narrows
// down. Also finds the busiest minute of the traffic, for comparison.

export type RateVerdict =
  | 'held'
  /** A threshold broke. */
  | 'broken'
  /** The load generator was the bottleneck, so the target was not tested. */
  | 'generator'
  /** Most answers were refusals, so the target did little. */
  | 'refused'
  | 'interrupted'

export type FoundRate = {
  readonly held: number | undefined
  readonly broken: number | undefined
  /** `threshold`: the two are close, or the lowest rate broke. `highest`: no rate broke. */
  readonly ended: 'threshold' | 'highest' | 'generator' | 'refused' | 'interrupted'
}

// Runs of some seconds differ by about a tenth.
const closeEnough = 1.1
const highestRate = 100_000

/**
 * @param rates to start with, ascending; after the last one the rate doubles
 * @param least the lowest rate to try
 * @param tryRate sends at a rate; called again if a threshold breaks, because the machine may have paused
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
    const verdict = once === 'broken' || once === 'generator' ? await tryRate(rate) : once
    if (verdict === 'held') held = rate
    else if (verdict === 'broken') broken = rate
    else return { held, broken, ended: verdict }
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

/** The busiest part of traffic. */
export type Busiest = { readonly requests: number; readonly seconds: number; readonly rate: number }

const minuteMs = 60_000

/** Any 60 seconds; all of shorter traffic. Undefined for traffic of one instant. */
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
