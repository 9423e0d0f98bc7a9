// Two processes on one Redis, on a core each, beside one of them alone: the gain of the second.

import { issueKeys } from '../../test/scenarios/keys.ts'
import { count, median, notMeasured, type Row, sum } from '../row.ts'
import { get, path, withoutRedis } from './contender.ts'
import { gatewayEnv, startGateway } from './gateways.ts'
import { connections, load } from './load.ts'
import {
  coreCount,
  cpuSecondsOf,
  loadCores,
  loadCoresBesideTwo,
  pins,
  serverCores,
  stepAside,
} from './pinned.ts'
import { awayFromTurn, openBackground } from './world.ts'

const bar = 1.8

export const two: Row = {
  id: 'two',
  method:
    'Two gateways with one key on one Redis, each on a core and a port of its own. In turn, the first alone with ' +
    `${connections} connections and both at once with half of them each. By CPU: what both could answer in the ` +
    'processor time of two cores, of what one alone could in that of one.',
  run: async (scope, progress, { settings: { rounds = 5, seconds = 4 } }) => {
    const { folder, providerUrl, redisUrl, storeEnv } = await openBackground(scope)
    if (redisUrl === undefined) return { findings: [notMeasured('two processes of one', withoutRedis)] }
    const apart = loadCoresBesideTwo !== undefined
    if (apart) stepAside(loadCoresBesideTwo)
    const on = loadCoresBesideTwo ?? `${serverCores[0]},${loadCores}`
    const env = gatewayEnv(providerUrl, storeEnv)
    const [issued] = await issueKeys(env, ['enterprise'])
    const keys = [issued?.key ?? '']
    const gateways = await Promise.all(serverCores.map(core => startGateway(scope, folder, core, env)))
    for (const { urls } of gateways) await get(urls.api + path, { 'x-api-key': keys[0] ?? '' })

    let wrong = 0
    const measure = async (servers: typeof gateways) => {
      await awayFromTurn(seconds)
      const cpuOf = () => Promise.all(servers.map(({ child }) => cpuSecondsOf(child.pid ?? 0)))
      const before = sum(await cpuOf())
      const loads = await Promise.all(
        servers.map(({ urls }) =>
          load(folder, { url: urls.api ?? '', paths: [path], keys }, seconds, {
            on,
            atOnce: connections / servers.length,
          }),
        ),
      )
      const answers = sum(loads.map(one => one.answers))
      wrong += sum(loads.map(one => one.wrong))
      return {
        perSecond: sum(loads.map(one => one.answers / one.seconds)),
        cpuMicros: ((sum(await cpuOf()) - before) * 1e6) / answers,
      }
    }
    const [alone, both] = [[], []] as { perSecond: number; cpuMicros: number }[][]
    for (let round = 0; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}`)
      const one = await measure(gateways.slice(0, 1))
      const all = await measure(gateways)
      if (round === 0) continue
      alone?.push(one)
      both?.push(all)
    }
    const bestOf = (samples = alone): number => Math.max(...(samples ?? []).map(one => one.perSecond))
    const leastCpu = (samples = alone): number => Math.min(...(samples ?? []).map(one => one.cpuMicros))
    const medianRate = (samples = alone): number => median((samples ?? []).map(one => one.perSecond))
    const [share, cpuShare] = [bestOf(both) / bestOf(alone), (2 * leastCpu(alone)) / leastCpu(both)]
    // On two cores the load competes with the measured processes, so that the bar does not apply to that figure.
    const permits = pins && coreCount >= 4
    return {
      findings: [
        {
          what: 'two processes of one: answers a second',
          bar: permits ? `≥ ${bar} ×` : '—',
          measured:
            `${share.toFixed(2)} × (${count(bestOf(both))} of ${count(bestOf(alone))} best, ${count(medianRate(both))} of ` +
            `${count(medianRate(alone))} median); ${wrong} wrong${permits ? '' : `; load and Redis share the ${coreCount} cores`}`,
          met: permits ? share >= bar && wrong === 0 : null,
          figures: { share, wrong },
        },
        {
          what: 'the same: by CPU of an answer',
          bar: permits ? '—' : `≥ ${bar} ×`,
          measured: `${cpuShare.toFixed(2)} × (${leastCpu(both).toFixed(0)} µs an answer with two, ${leastCpu(alone).toFixed(0)} µs with one)`,
          met: permits ? null : cpuShare >= bar && wrong === 0,
          figures: { cpuShare },
        },
      ],
      notes: permits
        ? []
        : [
            'The bar of answers a second applies only on four cores or more, with load and Redis on other cores. Here the bar is the ' +
              'processor time of an answer: how much two cores could answer if they had nothing else to do.',
          ],
    }
  },
}
