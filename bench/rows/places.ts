// 100 places with one request beside one place with each: what the list costs in processor time, with gzip and the access log.

import { join } from 'node:path'
import { measureInRounds, type Running, resultOf, type Subject } from '../rounds.ts'
import type { Row } from '../row.ts'
import { everyPlace, gatewaySubject, pathsInTurn } from '../servers/gateway.ts'
import { logged } from '../tools/gateway-process.ts'
import { openWorld } from '../tools/world.ts'

const [lists, placesOfList] = [10, 100]
const prefix = '/api/v1/weather'

const ones = everyPlace.slice(0, lists * placesOfList)
/** Each has places of many cells. */
const many = Array.from(
  { length: lists },
  (_, list) =>
    `${prefix}?places=${ones.filter((_, i) => i % lists === list).map(path => path.slice(prefix.length + 1))}`,
)

/** As a list takes one unit for each of its places. */
const countedAsAnswers = (subject: Subject): Subject => ({
  ...subject,
  start: async scope => {
    const running: Running = await subject.start(scope)
    const { counted } = running
    return { ...running, ...(counted && { counted: async () => (await counted()) / placesOfList }) }
  },
})

export const places: Row = {
  id: 'places',
  what: '100 places with one request, beside one place with each',
  run: async (scope, options, progress) => {
    const world = await openWorld(scope, { ...logged, ABOHAWA_WEATHER__HOURLY_HOURS: '48' })
    const { folder, env, reference } = world
    const subject = (id: string, name: string, paths: readonly string[]): Subject =>
      gatewaySubject({
        id,
        name: `Abohawa, embedded, log, ${name}`,
        folder,
        env: env({ ABOHAWA_STORE__PATH: join(folder, `${id}.db`) }),
        traffic: pathsInTurn(reference, paths, { 'accept-encoding': 'gzip' }),
      })
    const subjects = [
      subject('one', 'one place', ones),
      countedAsAnswers(subject('list', `${placesOfList} places`, many)),
    ]
    const measured = await measureInRounds(world, subjects, options, progress)
    return resultOf(measured, {
      [`CPU of a list of ${placesOfList} warm places, vs one place`]: ['list', 'one', 'cpu', '≤', 8],
    })
  },
}
