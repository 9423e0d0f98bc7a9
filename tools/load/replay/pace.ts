// When each request of a run is due: as recorded times a speed, or evenly at a rate. In a closed loop, requests are due when a
// connection is free.

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
  /** The number of arrivals; undefined where only time ends the run. */
  readonly total: number | undefined
  /** When the last is due, in ms; undefined for a closed loop without a duration, and without an end. */
  readonly endsAt: number | undefined
}

/** @throws InputError for a loop over requests of one instant */
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
    throw new InputError('--loop requires --rate, because all requests arrived at the same instant')
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

/** The first arrival for which a condition holds, by bisection; it must hold for all later arrivals too. */
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
