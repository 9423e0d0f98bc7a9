// A gateway in this process and a provider process on one manual clock, so that hours and days pass in seconds. The quota is
// practically unlimited; the scenario sets everything else.

import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { startGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'
import { type Env, isoOf, plentyOfQuota, senderTo } from './set-up.ts'

type Setting = {
  /** The first instant of the clock, in ms since 1970. */
  readonly start: number
  /** Options of the provider's command. */
  readonly provider: readonly string[]
  readonly env: Env
  /** The number of connections for requests. */
  readonly connections?: number
}

export const startOnOneClock = async (
  scope: Teardown,
  { start, provider: options, env, connections }: Setting,
) => {
  const clock = manualClock(start)
  const provider = await startProvider(scope, options, isoOf(start))
  const gateway = await startGateway(scope, {
    providerUrl: provider.url,
    clock,
    env: { ...plentyOfQuota, ABOHAWA_LOG__ACCESS: 'false', ...env },
  })
  const send = senderTo(scope, gateway.apiUrl, gateway.keys.enterprise ?? '', connections)
  /** Sets both clocks. */
  const moveTo = async (instant: number): Promise<void> => {
    clock.set(instant)
    await provider.steer({ now: isoOf(instant) })
  }
  return { clock, provider, gateway, send, moveTo }
}
