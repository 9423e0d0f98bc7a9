// A gateway of the product that runs on a clock of the fleet, in whatever process this is loaded into. member.ts says where one
// runs and what stands in front of it.

import { readConfig } from '../../src/config/load.ts'
import { type Gateway, startGateway } from '../../src/gateway.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { withConstants } from '../../test/support/constants.ts'
import { followIntervals, type GatewayClock } from './clock.ts'

export type RunningParts = {
  readonly clock: GatewayClock
  /** The true instant: what the clock of Redis says. */
  readonly trueNow: () => number
  /** The settings in force, as variables of the environment. */
  readonly env: () => Readonly<Record<string, string>>
  /** Takes each line of its log; without it nobody reads them, and that they are made is part of what a gateway does. */
  readonly logged?: (line: string) => void
}

/** @throws Error when it can't start, as with a store that does not answer */
export const runGateway = ({ clock, trueNow, env, logged = () => {} }: RunningParts): Promise<Gateway> => {
  const lines = { write: logged, copy: (): void => {}, end: (): void => {} }
  const read = () => {
    const given = env()
    return withConstants(given, () => readConfig({ files: [], env: given }))
  }
  return followIntervals(clock, () =>
    startGateway(read().config, {
      clock,
      log: createLog('warn', lines),
      lines,
      dropped: () => 0,
      // The clock of Redis is the machine's; that of the history is the true one here.
      open: async (...given) => {
        const store = await openStore(...given)
        const { time } = store
        return { ...store, time: () => time().then(trueNow) }
      },
      source: { read, files: [] },
    }),
  )
}
