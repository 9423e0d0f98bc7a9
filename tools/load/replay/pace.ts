// When each request of a run is due: as recorded times a speed, or evenly at a rate. Pure. A closed loop has no due instants:
// its requests are due when a connection is free.

import { InputError } from 'abohawa/common/errors.ts'
import type { ReplayResult } from '../report/result.ts'
import type { Schedule } from './schedule.ts'

export type Pace = {
  readonly mode: ReplayResult['pace']['mode']
  readonly speed: number
  /** Of `rate`: requests a second. */
  readonly rate: number
  readonly loop: boolean
  readonly durationMs: number | undefined
  /** Requests due before it, in ms from the start of the run, are sent but not recorded. */
  readonly warmUpMs: number
}

/** Arrivals by number: 0, 1, 2, … */
export type Arrivals = {
  /** ms since the begin of the run; Infinity once the run is over. */
  due(arrival: number): number
  request(arrival: number): number
  /** How many there will be; undefined where only time ends the run. */
  readonly total: number | undefined
  /** When the last is due, in ms; undefined for a closed loop and for one that only a signal ends. */
  readonly endsAt: number | undefined
}

/** @throws InputError when a speed makes no sense of the requests */
export const arrivalsOf = (schedule: Schedule, pace: Pace): Arrivals => {
  const { mode, speed, rate, loop, durationMs = Number.POSITIVE_INFINITY } = pace
  const { count, at } = schedule
  const request = loop ? (arrival: number) => arrival % count : (arrival: number) => arrival
  const most = loop ? Number.POSITIVE_INFINITY : count
  if (mode === 'closed')
    return {
      due: arrival => (arrival < most ? 0 : Number.POSITIVE_INFINITY),
      request,
      total: Number.isFinite(most) && durationMs === Number.POSITIVE_INFINITY ? most : undefined,
      endsAt: Number.isFinite(durationMs) ? durationMs : undefined,
    }
  const span = (at[count - 1] ?? 0) / speed
  // One mean gap between the last of a round and the first of the next.
  const period = count > 1 ? span + span / (count - 1) : 0
  if (mode === 'recorded' && loop && period === 0)
    throw new InputError('--loop repeats arrivals that are all of one instant; allowed: with --rate')
  const planned =
    mode === 'rate'
      ? (arrival: number) => (arrival * 1000) / rate
      : loop
        ? (arrival: number) => Math.floor(arrival / count) * period + (at[arrival % count] as number) / speed
        : (arrival: number) => (at[arrival] as number) / speed
  const due = (arrival: number): number => {
    if (arrival >= most) return Number.POSITIVE_INFINITY
    const ms = planned(arrival)
    return ms < durationMs ? ms : Number.POSITIVE_INFINITY
  }
  const isBounded = Number.isFinite(most) || Number.isFinite(durationMs)
  if (!isBounded) return { due, request, total: undefined, endsAt: undefined }
  const total = firstArrival(arrival => due(arrival) === Number.POSITIVE_INFINITY, most)
  return { due, request, total, endsAt: total === 0 ? 0 : planned(total - 1) }
}

/** The number of the first arrival of which something holds that holds of all after it, by bisection: due instants ascend. */
const firstArrival = (holds: (arrival: number) => boolean, most = Number.POSITIVE_INFINITY): number => {
  let high = 1
  while (high < most && !holds(high)) high *= 2
  high = Math.min(high, most)
  let low = 0
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
