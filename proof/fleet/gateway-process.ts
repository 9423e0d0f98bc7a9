// Starts a gateway in a separate process, whose clock follows that of the fleet, and calls it: gateway-child.ts is the other end.
// It can be killed and made to stand still as any process.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { forkCalled } from './calls.ts'
import type { Call } from './gateway-child.ts'
import { writeInstant } from './instant.ts'
import type { Running, Site } from './site.ts'

const script = new URL('gateway-child.ts', import.meta.url)
// What a fault holds up goes on beside the moves, as in one process.
const longestDueMs = 40
let started = 0

/** @throws Error when it can't start, as with a store that does not answer */
export const startGatewayProcess = async (
  { clock }: Site,
  { folder, sabotage }: NonNullable<Site['processes']>,
  skewMs: number,
  env: () => Readonly<Record<string, string>>,
): Promise<Running> => {
  const instant = join(folder, `instant-${++started}`)
  const written = writeInstant(instant)
  const { child, call, end, kill } = forkCalled<Call>(script, sabotage ? [sabotage] : [])
  let isSuspended = false
  const unfollow = clock.follow({
    moved: written.write,
    runDue: async () => {
      if (!isSuspended) await Promise.race([call({ do: 'due' }).catch(() => {}), pause(longestDueMs)])
    },
  })
  child.once('exit', () => {
    unfollow()
    written.close()
  })
  const urls = await call({ do: 'start', env: env(), skewMs, instant }).catch(error => {
    child.kill('SIGKILL')
    throw error
  })
  return {
    ...(urls as { apiUrl: string; opsUrl: string }),
    configure: async () => String(await call({ do: 'configure', env: env() })),
    readCatalogue: async () => void (await call({ do: 'catalogue' })),
    stop: async () => {
      await call({ do: 'stop' })
      await end()
    },
    kill,
    ping: () => (isSuspended ? undefined : call({ do: 'ping' }).catch(() => {})),
    suspend: () => {
      isSuspended = true
      child.kill('SIGSTOP')
    },
    resume: () => {
      isSuspended = false
      child.kill('SIGCONT')
    },
  }
}
