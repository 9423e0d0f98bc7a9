// New places: points within loaded cells, each new to the process, with gzip and without. Every body is made and compressed for
// its first request, so the difference is the cost of compression.

import { createGrid } from '../../src/weather/cell.ts'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { forAll, pathOf, type Scope } from '../../test/scenarios/set-up.ts'
import { type Contender, get, type World } from './contender.ts'
import { countingOf, startGateway } from './gateways.ts'
import { decoded } from './mix-traffic.ts'
import { serverCores } from './pinned.ts'

const area = { south: 23, west: 89 }
const side = 20_000
const degreesOfStep = 1e-4
// Has no divisor in common with side², so that no point comes twice before all have come.
const stride = 154_508_497
/** More than a process answers; a load that sends all of its points is reported as a fault. */
const pointsPerSecond = 50_000

const variants = [
  {
    id: 'mix-new-identity',
    name: 'Abohawa, Redis, 1 key, a new point each time, identity',
    encoding: 'identity',
  },
  { id: 'mix-new-gzip', name: 'Abohawa, Redis, 1 key, a new point each time, gzip', encoding: 'gzip' },
]

/** Paths of points, none of which was returned before. */
const createPoints = () => {
  let position = 0
  return (count: number): string[] =>
    Array.from({ length: count }, () => {
      position = (position + stride) % (side * side)
      const latitude = area.south + Math.floor(position / side) * degreesOfStep
      const longitude = area.west + (position % side) * degreesOfStep
      return `/api/v1/weather/coords/${latitude.toFixed(4)}/${longitude.toFixed(4)}`
    })
}

export const startNewPlaces = async (scope: Scope, world: World, seconds: number): Promise<Contender[]> => {
  const env = world.env({ ABOHAWA_REDIS__URL: world.redisUrl ?? '', ABOHAWA_REDIS__PREFIX: 'mix-new:' })
  const issued = await issueKeys(env, ['enterprise'])
  const keys = issued.map(({ key }) => key)
  const server = await startGateway(scope, world.folder, serverCores[0], env)
  const url = server.urls.api ?? ''
  const send = (path: string, encoding: string) =>
    get(url + path, { 'x-api-key': keys[0] ?? '', 'accept-encoding': encoding })
  const end = side * degreesOfStep + 0.1
  const cells = createGrid(0.1).cellsIn({
    south: area.south - 0.1,
    west: area.west - 0.1,
    north: area.south + end,
    east: area.west + end,
  })
  const warm = (): Promise<void> =>
    forAll(cells.map(pathOf), 64, async path => {
      const { status } = await send(path, 'identity')
      if (status !== 200) throw new Error(`${path} answered ${status}`)
    })
  await warm()
  const points = createPoints()
  return variants.map(({ id, name, encoding }) => ({
    ...countingOf(
      server,
      env,
      issued.map(one => one.id),
      ['200'],
    ),
    id,
    name,
    renew: async () => {
      await server.restart()
      await warm()
    },
    workload: async () => ({
      url,
      paths: points(seconds * pointsPerSecond),
      keys,
      headers: { 'accept-encoding': encoding },
    }),
    maxAnswers: seconds * pointsPerSecond,
    check: async () => {
      for (const path of points(8)) {
        const answer = await send(path, encoding)
        const isGzip = answer.headers['content-encoding'] === 'gzip'
        if (answer.status !== 200 || isGzip !== (encoding === 'gzip'))
          throw new Error(`${path} answered ${answer.status}, ${answer.headers['content-encoding']}`)
        if (!decoded(answer).equals((await world.reference(path)).body))
          throw new Error(`${path} has another body than the reference`)
      }
    },
  }))
}
