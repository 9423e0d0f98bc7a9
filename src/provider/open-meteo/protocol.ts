// Open-Meteo's forecast protocol as a ProviderProtocol, and the only entry to this folder.

import type { Calendar } from '../../common/calendar.ts'
import { type Horizon, usualHorizon } from '../../weather/horizon.ts'
import type { ProviderProtocol } from '../protocol.ts'
import { decodeTimelines } from './decode.ts'
import { maxPointsPerRequest, weightOfFailure } from './limits.ts'
import { modelRuns } from './model-run.ts'
import { passthrough } from './passthrough.ts'
import { refusalOf } from './refusal.ts'
import { boundsFor, pathFor, weightOfPoint } from './request.ts'

// The provider's documentation says that a refused concurrent call has room again in about a second.
const busyPauseMs = 1_000

/** @param calendar of the zone whose local days and hours are requested */
export const createOpenMeteo = ({
  horizon,
  calendar,
}: {
  readonly horizon: Horizon
  readonly calendar: Calendar
}): ProviderProtocol => ({
  // Uses the usual horizon, not the configured one: timelines of all horizons share a cache namespace.
  identity: pathFor([], usualHorizon, calendar.zone),
  maxCellsPerRequest: maxPointsPerRequest,
  weightPerCell: weightOfPoint(horizon),
  weightOfFailure,
  busyPauseMs,
  accept: 'application/json',
  keyHeaders: apiKey => ({ 'x-api-key': apiKey }),
  refusalOf,
  requestFor: cells => ({
    path: pathFor(cells, horizon, calendar.zone),
    maxBytes: boundsFor(cells.length, horizon).bytes,
    decode: (body, requestedAt, clock, onOdd) =>
      decodeTimelines(body, { cells, requestedAt, clock, onOdd, horizon, calendar }),
  }),
  runs: modelRuns,
  passthrough,
})
