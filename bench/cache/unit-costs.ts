// The cost of a request, a key and a cell for a gateway and its Redis, on realistic traffic: many places, many keys, gzip, the
// access log on. growth.ts multiplies these.

import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { forAll, placesByCell, type Scope } from '../../test/scenarios/set-up.ts'
import { get } from '../speed/contender.ts'
import { gatewayEnv, startGateway } from '../speed/gateways.ts'
import { load } from '../speed/load.ts'
import { generateMix, keyOf } from '../speed/mix-traffic.ts'
import { cpuSecondsOf, residentOf, serverCores } from '../speed/pinned.ts'
import { openBackground } from '../speed/world.ts'

/** Per answered request, at so many connections without pause. */
type RequestCost = {
  readonly connections: number
  readonly perSecond: number
  /** Processor time of the gateway and of Redis, in microseconds. */
  readonly gatewayUs: number
  readonly redisUs: number
  readonly redisCommands: number
}

export type UnitCosts = {
  readonly requests: readonly RequestCost[]
  /** Of the body and head of an answer, the mean over the mix. */
  readonly bytesGzip: number
  readonly bytesIdentity: number
  /** Memory of Redis. */
  readonly bytesPerCell: number
  readonly bytesPerKey: number
  /** Memory of a gateway. */
  readonly residentAtStart: number
  readonly residentAfter: number
  readonly cells: number
  /** Commands to Redis and microseconds of a core each second, without a request. */
  readonly idleCommands: number
  readonly idleUs: number
}

const keys = 1_000
const idleSeconds = 10
const sampled = 400
const connectionCounts = [1, 16, 64, 256]

/** The mix of `traffic generate`, without requests that are refused. */
const mixOptions = `--rate 1000 --duration 20s --shape flat --keys ${keys} --bad 0 --conditional 0`.split(' ')

export const measureUnitCosts = async (
  scope: Scope,
  seconds: number,
  progress: (text: string) => void,
): Promise<UnitCosts | undefined> => {
  const { folder, providerUrl, redisUrl } = await openBackground(scope)
  if (redisUrl === undefined) return undefined
  const redis = new Redis(redisUrl)
  scope.teardown(() => redis.quit())
  const info = async (name: string): Promise<number> =>
    Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(await redis.info())?.[1])
  const env = gatewayEnv(providerUrl, {
    ABOHAWA_REDIS__URL: redisUrl,
    ABOHAWA_WEATHER__HOURLY_HOURS: '48',
    ABOHAWA_LOG__ACCESS: 'true',
    ABOHAWA_LOG__LEVEL: 'info',
  })
  const beforeKeys = await info('used_memory')
  const issued = await issueKeys(env, Array(keys + 1).fill('enterprise'))
  const [first = { key: '' }, ...others] = issued
  const { child, urls } = await startGateway(scope, folder, serverCores[0], env)
  const api = urls.api ?? ''
  const pid = child.pid ?? 0
  const redisPid = await info('process_id')
  const residentAtStart = (await residentOf(pid)).now

  progress('loads every cell')
  const places = placesByCell()
  const beforeCells = await info('used_memory')
  const bytesOfRecords = beforeCells - beforeKeys
  await forAll(
    places.flatMap(({ paths }) => paths.slice(0, 1)),
    64,
    path => get(api + path, { 'x-api-key': first.key }),
  )
  const bytesPerCell = ((await info('used_memory')) - beforeCells) / places.length

  progress('uses every key')
  const beforeUse = await info('used_memory')
  const anyPath = places[0]?.paths[0] ?? ''
  await forAll(others, 64, ({ key }) => get(api + anyPath, { 'x-api-key': key }))
  const bytesPerKey = (bytesOfRecords + (await info('used_memory')) - beforeUse) / keys

  progress(`idles for ${idleSeconds} s`)
  const spent = async () => ({
    commands: await info('total_commands_processed'),
    redisUs: (await cpuSecondsOf(redisPid)) * 1e6,
    gatewayUs: (await cpuSecondsOf(pid)) * 1e6,
  })
  const beforeIdle = await spent()
  await pause(idleSeconds * 1000)
  const afterIdle = await spent()
  const idleCommands = (afterIdle.commands - beforeIdle.commands) / idleSeconds
  const idleUs = (afterIdle.gatewayUs - beforeIdle.gatewayUs) / idleSeconds

  const { requests } = await generateMix(folder, mixOptions)
  const otherKeys = others.map(({ key }) => key)
  const workload = {
    url: api,
    paths: requests.map(({ path }) => path),
    keys: requests.map(one => keyOf(one, otherKeys)),
    headers: { 'accept-encoding': 'gzip' },
  }
  await load(folder, workload, seconds)
  const costs: RequestCost[] = []
  for (const atOnce of connectionCounts) {
    progress(`the mix at ${atOnce} connections`)
    const before = await spent()
    const { answers, seconds: took } = await load(folder, workload, seconds, { atOnce })
    const after = await spent()
    costs.push({
      connections: atOnce,
      perSecond: answers / took,
      gatewayUs: (after.gatewayUs - before.gatewayUs) / answers,
      redisUs: (after.redisUs - before.redisUs) / answers,
      redisCommands: (after.commands - before.commands) / answers,
    })
  }
  const bytesWith = async (encoding: string): Promise<number> => {
    let bytes = 0
    for (const request of requests.slice(0, sampled)) {
      const { headers, body } = await get(api + request.path, {
        'x-api-key': keyOf(request, otherKeys),
        'accept-encoding': encoding,
      })
      bytes += body.length + Object.entries(headers).flat().join('').length + 4 * Object.keys(headers).length
    }
    return bytes / sampled
  }
  return {
    requests: costs,
    bytesGzip: await bytesWith('gzip'),
    bytesIdentity: await bytesWith('identity'),
    bytesPerCell,
    bytesPerKey,
    residentAtStart,
    residentAfter: (await residentOf(pid)).now,
    cells: places.length,
    idleCommands,
    idleUs,
  }
}
