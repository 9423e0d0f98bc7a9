// The resident memory of a process that has served every place of the catalogue in both languages.

import { issueKeys } from '../../test/scenarios/keys.ts'
import { forAll, metric, placesByCell } from '../../test/scenarios/set-up.ts'
import { count, type Row } from '../row.ts'
import { get } from './contender.ts'
import { gatewayEnv, startGateway } from './gateways.ts'
import { load } from './load.ts'
import { residentOf, serverCores } from './pinned.ts'
import { openBackground } from './world.ts'

const boundMiB = 320

export const resident: Row = {
  id: 'resident',
  method:
    'A gateway on Redis with the settings of the defaults serves the weather of every place in English and in Bangla, ' +
    'to 64 callers, and then all of these in turn as fast as it goes. Resident memory as the kernel reports it.',
  run: async (scope, progress, { settings: { seconds = 4 } }) => {
    const { folder, providerUrl, storeEnv } = await openBackground(scope)
    const env = gatewayEnv(providerUrl, { ...storeEnv, ABOHAWA_WEATHER__HOURLY_HOURS: '48' })
    const [issued] = await issueKeys(env, ['enterprise'])
    const key = issued?.key ?? ''
    const { child, urls } = await startGateway(scope, folder, serverCores[0], env)
    const atStart = await residentOf(child.pid ?? 0)
    const paths = placesByCell().flatMap(place =>
      place.paths.flatMap(one => [`${one}?lang=en`, `${one}?lang=bn`]),
    )
    let failed = 0
    progress(`requests ${count(paths.length)} bodies`)
    await forAll(paths, 64, async one => {
      if ((await get(urls.api + one, { 'x-api-key': key })).status !== 200) failed += 1
    })
    const cells = await metric(urls.ops ?? '', 'abohawa_cache_memory_entries')
    const filled = await residentOf(child.pid ?? 0)
    progress('load on all of them')
    const { answers, wrong } = await load(folder, { url: urls.api ?? '', paths, keys: [key] }, seconds)
    const loaded = await residentOf(child.pid ?? 0)
    const most = Math.max(filled.now, loaded.now)
    return {
      findings: [
        {
          what: `resident memory with ${count(cells)} cells, ${count(paths.length / 2)} places in both languages`,
          bar: `≤ ${boundMiB} MiB`,
          measured:
            `${filled.now.toFixed(0)} MiB when all were requested, ${loaded.now.toFixed(0)} MiB after ${count(answers)} more; ` +
            `${atStart.now.toFixed(0)} MiB at the start, ${loaded.most.toFixed(0)} MiB at the highest; ${failed + wrong} failed`,
          met: most <= boundMiB && failed + wrong === 0,
          figures: {
            filled: filled.now,
            loaded: loaded.now,
            most: loaded.most,
            atStart: atStart.now,
            failed,
          },
        },
      ],
    }
  },
}
