// The time from the start of a process to its first response, with the whole catalogue.

import { once } from 'node:events'
import { join } from 'node:path'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { freePort } from '../../test/support/listening.ts'
import { product } from '../../test/support/process.ts'
import { inScope } from '../../test/support/teardown.ts'
import { until } from '../../test/support/until.ts'
import { judged, median, ms, type Row } from '../row.ts'
import { gatewayEnv } from '../tools/gateway-process.ts'
import { serverCore, spawnPinned } from '../tools/processes.ts'
import { get, openBackground } from '../tools/world.ts'

const boundMs = 250
const starts = 7

export const start: Row = {
  id: 'start',
  what: 'a start, to the first answer',
  run: async (scope, _, progress) => {
    const { folder, providerUrl } = await openBackground(scope)
    const env = gatewayEnv(providerUrl, { ABOHAWA_STORE__PATH: join(folder, 'store.db') })
    const [issued] = await issueKeys(env, ['enterprise'])
    const headers = { 'x-api-key': issued?.key ?? '' }
    const times: number[] = []
    const bare: number[] = []
    for (let round = 1; round <= starts; round++) {
      progress(`${round} of ${starts}`)
      await inScope(async own => {
        const began = performance.now()
        const nothing = spawnPinned(own, folder, serverCore, [process.execPath, '-e', '0'])
        await once(nothing.child, 'exit')
        bare.push(performance.now() - began)

        const port = await freePort()
        const url = `http://127.0.0.1:${port}/api/v1/locations?type=division`
        const started = performance.now()
        spawnPinned(own, folder, serverCore, [product, 'serve'], { ...env, ABOHAWA_SERVER__PORT: `${port}` })
        await until('it answers', async () => (await get(url, headers)).status === 200, { everyMs: 2 })
        times.push(performance.now() - started)
      })
    }
    return {
      findings: [
        judged(
          'start to the first answer',
          `≤ ${boundMs} ms`,
          Math.min(...times) <= boundMs,
          `${ms(Math.min(...times))} best, ${ms(median(times))} median of ${starts}; ` +
            `an empty Node process ${ms(Math.min(...bare))}`,
          { times, bare },
        ),
      ],
    }
  },
}
