// The time from the start of a process to its first response, with the whole catalogue.

import { join } from 'node:path'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { product } from '../../test/support/process.ts'
import { freePort } from '../../test/support/redis-server.ts'
import { until } from '../../test/support/until.ts'
import { median, ms, type Row } from '../row.ts'
import { get } from './contender.ts'
import { gatewayEnv } from './gateways.ts'
import { serverCores, spawnPinned } from './pinned.ts'
import { openBackground } from './world.ts'

const boundMs = 450
const starts = 7

export const start: Row = {
  id: 'start',
  method:
    `\`abohawa serve\` on the embedded store, ${starts} times, from the start of the process until a request with a key to ` +
    '/api/v1/locations gets its 200, requested every 2 ms; beside it a Node process that does nothing, to its end.',
  run: async (scope, progress) => {
    const { folder, providerUrl } = await openBackground(scope)
    const env = gatewayEnv(providerUrl, { ABOHAWA_STORE__PATH: join(folder, 'store.db') })
    const [issued] = await issueKeys(env, ['enterprise'])
    const headers = { 'x-api-key': issued?.key ?? '' }
    const times: number[] = []
    const bare: number[] = []
    for (let round = 1; round <= starts; round++) {
      progress(`start ${round} of ${starts}`)
      const began = performance.now()
      const nothing = spawnPinned(scope, folder, serverCores[0], [process.execPath, '-e', '0'])
      await new Promise(resolve => nothing.child.once('exit', resolve))
      bare.push(performance.now() - began)

      const port = await freePort()
      const url = `http://127.0.0.1:${port}/api/v1/locations?type=division`
      const started = performance.now()
      const { child } = spawnPinned(scope, folder, serverCores[0], [product, 'serve'], {
        ...env,
        ABOHAWA_SERVER__PORT: String(port),
      })
      await until('it answers', async () => (await get(url, headers)).status === 200, 30_000, 2)
      times.push(performance.now() - started)
      child.kill('SIGTERM')
      await until('the process ended', () => child.exitCode !== null)
    }
    return {
      findings: [
        {
          what: 'start to the first answer, with the whole catalogue',
          bar: `≤ ${boundMs} ms`,
          measured:
            `${ms(Math.min(...times))} best, ${ms(median(times))} median of ${starts}; ` +
            `a Node process that does nothing ${ms(Math.min(...bare))} best, ${ms(median(bare))} median`,
          met: Math.min(...times) <= boundMs,
          figures: { times, bare },
        },
      ],
    }
  },
}
