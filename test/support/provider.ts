// The simulated provider on a real port, as a process or in that of the test, and the handle that steers it: its clock, its faults,
// the requests it received.

import { type SimulatorOptions, startSimulator } from '../../tools/provider/simulator.ts'
import { noon } from './manual-clock.ts'
import { startCommand } from './process.ts'
import type { Teardown } from './teardown.ts'

type ProviderState = {
  calls: number
  points: number
  weight: number
  refused: number
  inFlight: number
  maxInFlight: number
  requests: { method: string; latitudes: number; query: Record<string, string>; status: number }[]
}

type Steering = {
  fault?: string
  times?: number
  latencyMs?: number
  now?: string | null
  hold?: boolean
  reset?: boolean
}

export type ProviderProcess = {
  url: string
  state(): Promise<ProviderState>
  steer(steering: Steering): Promise<ProviderState>
}

/**
 * By default its weather never changes with a model run, so that equal instants mean equal weather. Its clock stands
 * still at `now`, the instant of manual clocks too; with null it is the machine's.
 */
export const startProvider = async (
  t: Teardown,
  args: readonly string[] = ['--runs', 'none'],
  now: string | null = noon,
): Promise<ProviderProcess> => {
  const { urls } = await startCommand(t, ['provider', '--port', '0', '--json', ...args], ['provider'])
  return steeredAt(urls.provider ?? '', now)
}

/** The same in the process of the test: where its own process shows nothing, its start need not be waited for. */
export const startProviderHere = async (
  t: Teardown,
  options: SimulatorOptions = { runs: 'none' },
  now: string | null = noon,
): Promise<ProviderProcess> => {
  const simulator = await startSimulator(options)
  t.teardown(() => simulator.close())
  return steeredAt(simulator.url, now)
}

/** The handle of the provider at a URL, whose clock is set. */
const steeredAt = async (url: string, now: string | null): Promise<ProviderProcess> => {
  const control = async (init?: RequestInit) => {
    const response = await fetch(`${url}/control`, init)
    const body = (await response.json()) as ProviderState & { error?: string }
    if (!response.ok) throw new Error(`control: ${JSON.stringify(body)}`)
    return body
  }
  const steer = (steering: Steering) =>
    control({
      method: 'POST',
      body: JSON.stringify(steering),
      headers: { 'content-type': 'application/json' },
    })
  await steer({ now })
  return { url, state: () => control(), steer }
}
