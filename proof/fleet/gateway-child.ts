// A gateway of a history in a process of its own: `node gateway-child.ts [<sabotage>]`. The process that forked it sends its start and
// then calls, one message each, and gets one message back for each. It ends when that process is gone.

import type { Gateway } from '../../src/gateway.ts'

type Env = Readonly<Record<string, string>>

/** What the child is asked to do. `due`: the clock was moved, and what is due by now runs. */
export type Call =
  | { readonly do: 'start'; readonly env: Env; readonly skewMs: number; readonly instant: string }
  | { readonly do: 'configure'; readonly env: Env }
  | { readonly do: 'due' | 'catalogue' | 'stop' }

export type Numbered = Call & { readonly id: number }
export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string }

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

const take = async (call: Call): Promise<unknown> => {
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
    case 'due':
      return runDue()
    case 'stop':
      return gateway?.close()
  }
}

process.on('message', ({ id, ...call }: Numbered) => {
  const reply = (sent: Reply): void =>
    void process.send?.(sent, () => {
      if (call.do === 'stop') process.exit(0)
    })
  take(call).then(
    value => reply({ id, value }),
    (error: unknown) => reply({ id, error: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
