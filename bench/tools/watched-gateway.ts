// A gateway into which watched.ts is loaded: what it is asked while a row runs, and its reports.

import { once } from 'node:events'
import type { Env } from '../../test/scenarios/set-up.ts'
import { type Running, startLimited } from '../../test/support/process.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import type { Order, WatchedReport } from './watched.ts'

export type Watched = Running & { ask(order: Order): Promise<WatchedReport> }

const watched = new URL('watched.ts', import.meta.url).href

/** @param aheadMs how far its clock is ahead of the machine's */
export const startWatched = async (
  scope: Teardown,
  dataBytes: number,
  env: Env,
  aheadMs = 0,
): Promise<Watched> => {
  const settings = { ...env, NODE_OPTIONS: `--import=${watched}`, BENCH_AHEAD_MS: String(aheadMs) }
  const gateway = await startLimited(scope, dataBytes, settings, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  const { child } = gateway
  return {
    ...gateway,
    ask: async order => {
      const reported = once(child, 'message')
      child.send(order)
      return (await reported)[0] as WatchedReport
    },
  }
}
