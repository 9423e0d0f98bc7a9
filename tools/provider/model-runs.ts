// The model runs and their metadata. A run starts every six hours and is available six and a half hours later.

import { hourMs } from 'abohawa/common/calendar.ts'
import { runDelayMs as delayMs, runEveryMs as everyMs } from 'abohawa/protocol/limits.ts'

/** A model run: when its forecast starts, in ms since the epoch. */
export type ModelRun = { readonly initialisedAt: number }

// The longest reach of the models behind an answer.
const reachMs = 16 * 24 * hourMs

export const modelNames: ReadonlySet<string> = new Set(['ecmwf_ifs', 'dwd_icon', 'ncep_gfs013'])

/** The newest available run. */
export const runAt = (now: number): ModelRun => ({
  initialisedAt: Math.floor((now - delayMs) / everyMs) * everyMs,
})

/** The last instant of a run. */
export const reachOf = (run: ModelRun | undefined): number =>
  run ? run.initialisedAt + reachMs : Number.POSITIVE_INFINITY

/** The body of `/data/<model>/static/meta.json`, in Unix seconds. */
export const metaOf = ({ initialisedAt }: ModelRun): string =>
  JSON.stringify({
    data_end_time: (initialisedAt + reachMs) / 1000,
    last_run_availability_time: (initialisedAt + delayMs) / 1000,
    last_run_initialisation_time: initialisedAt / 1000,
    last_run_modification_time: (initialisedAt + delayMs) / 1000 - 240,
    temporal_resolution_seconds: 3600,
    update_interval_seconds: everyMs / 1000,
  })
