// A gateway of a history in a separate process: `node gateway-child.ts [<sabotage>]`. gateway-process.ts starts and calls it.

import type { Gateway } from '../../src/gateway.ts'
import { serveCalls } from './calls.ts'

type Env = Readonly<Record<string, string>>

/** What the child is asked to do. `due`: the clock was moved, and what is due by now runs. */
export type Call =
  | { readonly do: 'start'; readonly env: Env; readonly skewMs: number; readonly instant: string }
  | { readonly do: 'configure'; readonly env: Env }
  | { readonly do: 'due' | 'catalogue' | 'ping' | 'stop' }

const [sabotage] = process.argv.slice(2)
if (sabotage) (await import('../sabotage/plant.ts')).plant(sabotage)
const [{ createClocks }, { readInstant }, { runGateway }] = await Promise.all([
  import('./clock.ts'),
  import('./instant.ts'),
  import('./running.ts'),
])

let gateway: Gateway | undefined
let runDue = async (): Promise<void> => {}
let env: Env = {}

process.on('disconnect', () => process.exit(0))
serveCalls(async (call: Call): Promise<unknown> => {
  switch (call.do) {
    case 'start': {
      env = call.env
      const trueNow = readInstant(call.instant)
      const clocks = createClocks(trueNow)
      ;({ runDue } = clocks)
      gateway = await runGateway({ clock: clocks.clockOf(call.skewMs), trueNow, env: () => env })
      return { apiUrl: gateway.apiUrl, opsUrl: gateway.opsUrl }
    }
    case 'configure':
      env = call.env
      return gateway?.reloadConfig()
    case 'catalogue':
      return gateway?.reloadCatalogue().then(() => undefined)
    case 'ping':
      return
    case 'due':
      return runDue()
    case 'stop':
      return gateway?.close()
  }
})
