// The unit costs of a request, a key and a cell for a gateway and its Redis, on realistic traffic: many places, many keys, gzip, the
// access log on, and what a core of each takes a second.

import { setTimeout as pause } from 'node:timers/promises'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { forAll, placesByCell } from '../../test/scenarios/set-up.ts'
import { residentMiB } from '../../test/support/proc.ts'
import { warmUp } from '../rounds.ts'
import { count, found, type Row } from '../row.ts'
import { gatewayEnv, startGateway } from '../tools/gateway-process.ts'
import { generateMix, keyOf, mixKeys } from '../tools/mix.ts'
import { cpuSecondsOf, serverCore } from '../tools/processes.ts'
import { get, openBackground } from '../tools/world.ts'
import { load } from '../tools/wrk.ts'
import { mixEnv } from './mix.ts'

const idleSeconds = 10
const sampled = 400
/** Of a core, to which gateways and Redis are planned. */
const plannedShare = 0.6
const perSecondOf = (micros: number): string => count(Number(((plannedShare * 1e6) / micros).toPrecision(2)))

export const units: Row = {
  id: 'units',
  what: 'the unit costs from which a capacity is computed',
  run: async (scope, { seconds }, progress) => {
    const { folder, providerUrl, redisUrl, readRedis } = await openBackground(scope)
    const env = gatewayEnv(providerUrl, { ...mixEnv, ABOHAWA_REDIS__URL: redisUrl })
    const memory = async (): Promise<number> => (await readRedis()).usedMemory
    const beforeKeys = await memory()
    const [first = { key: '' }, ...others] = await issueKeys(env, Array(mixKeys + 1).fill('enterprise'))
    const { pid, urls } = await startGateway(scope, folder, serverCore, env)
    const api = urls.api ?? ''
    const residentAtStart = residentMiB(pid)

    progress('loads every cell')
    const places = placesByCell()
    const beforeCells = await memory()
    await forAll(places, 64, ({ paths }) => get(api + paths[0], { 'x-api-key': first.key }))
    const cellBytes = (await memory()) - beforeCells

    progress('uses every key')
    const beforeUse = await memory()
    await forAll(others, 64, ({ key }) => get(`${api}${places[0]?.paths[0]}`, { 'x-api-key': key }))
    const bytesPerKey = (beforeCells - beforeKeys + (await memory()) - beforeUse) / mixKeys

    const spent = async () => {
      const { commands, cpuSeconds } = await readRedis()
      return { commands, redisUs: cpuSeconds * 1e6, gatewayUs: (await cpuSecondsOf(pid)) * 1e6 }
    }
    progress(`idles for ${idleSeconds} s`)
    const beforeIdle = await spent()
    await pause(idleSeconds * 1000)
    const afterIdle = await spent()
    const idleCommands = (afterIdle.commands - beforeIdle.commands) / idleSeconds
    const idleMs = (afterIdle.gatewayUs - beforeIdle.gatewayUs) / idleSeconds / 1000

    const { requests } = await generateMix(folder)
    const keys = others.map(({ key }) => key)
    const workload = {
      url: api,
      paths: requests.map(({ path }) => path),
      keys: requests.map(one => keyOf(one, keys)),
      headers: { 'accept-encoding': 'gzip' },
    }
    await warmUp(folder, { workload: async () => workload })
    const costs = []
    for (const atOnce of [1, 16, 64, 256]) {
      progress(`the mix at ${atOnce} connections`)
      const before = await spent()
      const { answers, seconds: took } = await load(folder, workload, seconds, atOnce)
      const after = await spent()
      costs.push({
        atOnce,
        perSecond: answers / took,
        gatewayUs: (after.gatewayUs - before.gatewayUs) / answers,
        redisUs: (after.redisUs - before.redisUs) / answers,
        redisCommands: (after.commands - before.commands) / answers,
      })
    }
    const bytesWith = async (encoding: string): Promise<number> => {
      let bytes = 0
      for (const request of requests.slice(0, sampled)) {
        const given = { 'x-api-key': keyOf(request, keys), 'accept-encoding': encoding }
        const { headers, body } = await get(api + request.path, given)
        const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
        bytes += body.length + head.join('').length
      }
      return bytes / sampled
    }
    const [gzip, identity] = [await bytesWith('gzip'), await bytesWith('identity')]
    const residentAfter = residentMiB(pid)
    const [busy] = costs.filter(({ atOnce }) => atOnce === 64)
    if (!busy) throw new Error('64 connections were measured')
    return {
      findings: [
        ...costs.map(cost =>
          found(
            `a request at ${cost.atOnce} connection${cost.atOnce === 1 ? '' : 's'}`,
            `${cost.gatewayUs.toFixed(1)} µs; Redis ${cost.redisUs.toFixed(1)} µs, ${cost.redisCommands.toFixed(3)} commands; ` +
              `${count(cost.perSecond)}/s`,
            cost,
          ),
        ),
        found('bytes of an answer with its head', `${count(gzip)} with gzip, ${count(identity)} without`),
        found(
          'bytes of Redis',
          `${count(cellBytes / places.length)} a cell, ${count(bytesPerKey)} a key with its counts`,
        ),
        found(
          'an idle gateway, a second',
          `${idleCommands.toFixed(1)} commands of Redis, ${idleMs.toFixed(1)} ms of a core`,
        ),
        found(
          'resident memory',
          `${count(residentAtStart)} MiB at the start, ${count(residentAfter)} MiB with ${count(places.length)} cells`,
        ),
      ],
      notes: [
        `Planned to ${plannedShare * 100} % of a core, a gateway takes ${perSecondOf(busy.gatewayUs)} requests a second, and a Redis, or ` +
          `each shard of a cluster, ${perSecondOf(busy.redisUs)}, both at 64 connections.`,
      ],
    }
  },
}
