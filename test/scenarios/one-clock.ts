// A gateway in this process and a provider process on one clock that is moved by hand, so that hours and days pass in
// seconds. Nobody runs out of quota; everything else is set by the scenario.

import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { startGateway } from '../support/start-gateway.ts'
import { type Env, isoOf, plentyOfQuota, type Scope, senderTo } from './set-up.ts'

type Setting = {
  /** Where the clock stands at first, in ms since 1970. */
  readonly start: number
  /** Options of the provider's command. */
  readonly provider: readonly string[]
  readonly env: Env
  /** How many connections requests are sent on. */
  readonly connections?: number
}

export const startOnOneClock = async (
  scope: Scope,
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
