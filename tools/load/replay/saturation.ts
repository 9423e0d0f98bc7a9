// Looks for the highest rate that a target holds: doubles the rate until one breaks, or halves it until one is held, then tries
// between the two, and once far above. Also what such a rate is compared with, the busiest minute of the traffic. Sends nothing itself.

export type RateVerdict =
  | 'held'
  /** A threshold broke. */
  | 'broken'
  /** The load generator met a limit of its machine, or was the bottleneck when a threshold broke: nothing is known of the target. */
  | 'generator'
  | 'interrupted'

/** The rate that was held and the one that was not, as far as they are known, and what ended the search. */
export type Saturation = {
  readonly held: number | undefined
  readonly broken: number | undefined
  /** `threshold`: the two are close. `most`: all rates were held. `least`: none was. */
  readonly ended: 'threshold' | 'most' | 'least' | 'generator' | 'interrupted'
}

// As close as figures of runs of some seconds are to each other.
const closeEnough = 1.1
// A rate so far above the one that broke, and broken too, shows that no pause of a machine was taken for the limit.
const [farAbove, above] = [1.5, 2]

/**
 * @param first the rate to begin with, from `least` to `most`
 * @param tryRate sends at a rate; is called again where one breaks, because a pause of the machine is no limit of the target
 */
export const searchRate = async (
  { first, least, most }: { readonly first: number; readonly least: number; readonly most: number },
  tryRate: (rate: number) => Promise<RateVerdict>,
): Promise<Saturation> => {
  let rate = first
  let held: number | undefined
  let broken: number | undefined
  let highestBroken = 0
  for (;;) {
    const isCheck = broken !== undefined && rate > broken
    const once = await tryRate(rate)
    const isClear = isCheck || once === 'held' || once === 'interrupted'
    const verdict = isClear ? once : await tryRate(rate)
    if (verdict === 'interrupted') return { held, broken, ended: verdict }
    if (verdict === 'generator') return { held, broken, ended: isCheck ? 'threshold' : verdict }
    if (verdict === 'held') {
      held = rate
      // A lower rate that broke was not the target's limit.
      if (isCheck) broken = undefined
    } else {
      broken = Math.min(broken ?? rate, rate)
      highestBroken = Math.max(highestBroken, rate)
    }
    if (held !== undefined && broken !== undefined) {
      if (broken / held > closeEnough) rate = Number(Math.sqrt(held * broken).toPrecision(3))
      else if (highestBroken >= Math.min(broken * farAbove, most)) return { held, broken, ended: 'threshold' }
      else rate = Math.min(broken * above, most)
    } else if (held !== undefined) {
      if (rate >= most) return { held, broken, ended: 'most' }
      rate = Math.min(rate * 2, most)
    } else {
      if (rate <= least) return { held, broken, ended: 'least' }
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
