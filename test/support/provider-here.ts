// The simulated provider in the process of the test, on a real port: where the provider's own process shows nothing, its
// start need not be waited for. With the handle of provider-process.ts.

import { type SimulatorOptions, startSimulator } from '../../tools/provider/simulator.ts'
import { noon } from './manual-clock.ts'
import { type ProviderProcess, steeredAt } from './provider-process.ts'
import type { Teardown } from './teardown.ts'

/** By default as `startProvider` starts one: equal weather at equal instants, and a clock that stands still at `now`. */
export const startProviderHere = async (
  t: Teardown,
  options: SimulatorOptions = { runs: 'none' },
  now: string | null = noon,
): Promise<ProviderProcess> => {
  const simulator = await startSimulator(options)
  t.teardown(() => simulator.close())
  return steeredAt(simulator.url, now)
}
