// Open-Meteo's forecast protocol behind the gateway's one type for a provider's protocol. Everything in this folder is
// known through here; the gateway's composition alone imports it.

import type { Calendar } from '../../calendar.ts'
import type { Horizon } from '../../weather/horizon.ts'
import type { ProviderProtocol } from '../protocol.ts'
import { boundsFor } from './body-bounds.ts'
import { decodeTimelines } from './decode.ts'
import { mostPointsPerRequest } from './limits.ts'
import { modelRuns } from './model-run.ts'
import { passthrough } from './passthrough.ts'
import { pathFor } from './query.ts'
import { refusalOf } from './refusal.ts'
import { weightOfFailure, weightOfPoint } from './weight.ts'

// The provider says that a refused concurrent call has room again in about a second.
const busyPauseMs = 1_000

/** @param calendar of the zone whose local days and hours the provider is asked for */
export const createOpenMeteo = ({
  horizon,
  calendar,
}: {
  readonly horizon: Horizon
  readonly calendar: Calendar
}): ProviderProtocol => ({
  identity: pathFor([], horizon, calendar.zone),
  mostCellsPerRequest: mostPointsPerRequest,
  weightPerCell: weightOfPoint(horizon),
  weightOfFailure,
  busyPauseMs,
  accept: 'application/json',
  keyHeaders: apiKey => ({ 'x-api-key': apiKey }),
  refusalOf,
  requestFor: cells => ({
    path: pathFor(cells, horizon, calendar.zone),
    mostBytes: boundsFor(cells.length, horizon).bytes,
  }),
  decode: (body, requested) => decodeTimelines(body, { ...requested, horizon, calendar }),
  runs: modelRuns,
  passthrough,
})
