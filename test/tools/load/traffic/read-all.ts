// Requests of a day in November, and traffic files read to their end: what is in them, what is wrong, and the summary.

import { readTraffic, type TrafficFault } from '../../../../tools/load/traffic/read-traffic.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'

export const start = Date.parse('2026-11-21T06:00:00Z')

/** A request that arrives so many ms after the start. */
export const request = (at: number, more: Partial<TrafficRequest> = {}): TrafficRequest => ({
  at: start + at,
  method: 'GET',
  path: '/api/v1/weather/district/3026',
  ...more,
})

export const readAll = async (
  paths: readonly string[],
  options: Omit<NonNullable<Parameters<typeof readTraffic>[1]>, 'onFault'> = {},
) => {
  const faults: TrafficFault[] = []
  const traffic = readTraffic(paths, { onFault: fault => void faults.push(fault), ...options })
  const requests: TrafficRequest[] = []
  for await (const batch of traffic.batches()) requests.push(...batch)
  return { requests, faults, summary: traffic.summary() }
}
