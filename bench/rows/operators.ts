// What an operator's request costs consumers: the longest turn of the event loop of a gateway with many keys and many cells in
// demand, for each route of the listener for operators.

import { setTimeout as pause } from 'node:timers/promises'
import { randomBase62 } from '../../src/keys/key-form.ts'
import { openCallers } from '../../test/scenarios/callers.ts'
import { patientRedisEnv } from '../../test/support/redis-server.ts'
import { count, judged, median, ms, type Row } from '../row.ts'
import { gatewayEnv } from '../tools/gateway-process.ts'
import { startWatched } from '../tools/watched-gateway.ts'
import { openBackground } from '../tools/world.ts'
import { openStoreOf, writeKeys } from '../tools/written-keys.ts'

const [keyCount, cellCount] = [100_000, 50_000]
const cellDegrees = 0.02
/** Of a request; as many as the provider takes too. */
const cellsEach = 100
const dataBytes = 4 * 2 ** 30
const longestTurnMs = 20
// For what a response leaves behind: a purge is read from the log of changes twice a second.
const settleMs = 1_500
/** Of each request: of its turns the median counts, so that one garbage collection, or what is compiled at first, does not. */
const rounds = 3
/** The requests with the longest turns; the others are in the figures of `--json`. */
const shown = 5
const token = randomBase62(32)
/** In the catalogue's area: 225 columns of cells, from the south. */
const [south, west, columns] = [20.8, 88.1, 225]

type Route = readonly [method: string, path: string, body?: object]

/** A request for the weather of the next cells, row by row. */
const listOfCells = (first: number): string => {
  const points = Array.from({ length: cellsEach }, (_, i) => {
    const [row, column] = [Math.floor((first + i) / columns), (first + i) % columns]
    return `coords/${(south + row * cellDegrees).toFixed(2)}/${(west + column * cellDegrees).toFixed(2)}`
  })
  return `/api/v1/weather?places=${points.join(',')}`
}

/** Each route of the listener for operators; those that leave less in the cache come last. */
const routesFor = (key: string, subscriber: string): readonly Route[] => [
  ...['/status', '/cells', '/search?q=dha', '/metrics', '/readyz', '/livez', '/'].map(
    path => ['GET', path] as const,
  ),
  ...['/keys', '/keys?limit=1000', '/keys?filter=expires<30d', `/keys/${key}`, `/keys/${key}/usage`].map(
    path => ['GET', path] as const,
  ),
  ...['/usage', '/usage?limit=1000', '/usage/keys', '/usage/keys?q=zzzz', '/subscribers'].map(
    path => ['GET', path] as const,
  ),
  ['GET', `/subscribers/${subscriber}`],
  ['POST', '/keys', { subscriber: 'Bench', tier: 'starter' }],
  ['POST', `/keys/${key}/limit`, { limit: 10_000 }],
  ['POST', `/keys/${key}/rotate`],
  ['POST', `/keys/${key}/revoke`],
  ['POST', `/keys/${key}/reinstate`],
  ['POST', `/subscribers/${subscriber}/revoke`],
  ['POST', `/subscribers/${subscriber}/reinstate`],
  ['GET', '/cache/cell?of=23.8,90.4'],
  ['POST', '/cache/refresh?of=23.8,90.4'],
  ['GET', '/cache/warm'],
  ['POST', '/cache/warm', { dryRun: true }],
  ['POST', '/cache/warm', { scope: 'all', dryRun: true }],
  ['POST', '/cache/purge', { scope: 'all', dryRun: true }],
  ['POST', '/cache/purge', { scope: 'division/30', area: true }],
  ['POST', '/cache/purge', { scope: 'all' }],
  ['POST', '/cache/purge', { scope: '22,88,24,91', hard: true }],
  ['POST', '/cache/purge', { scope: 'all', hard: true }],
]

export const operators: Row = {
  id: 'operators',
  what: `the longest turn of each request of operators, with ${count(keyCount)} keys and ${count(cellCount)} cells`,
  run: async (scope, _options, progress) => {
    const { providerUrl, redisUrl } = await openBackground(scope)
    const env = gatewayEnv(providerUrl, {
      ...patientRedisEnv,
      ABOHAWA_PROVIDER__TIMEOUT: '30s',
      ABOHAWA_REDIS__URL: redisUrl,
      ABOHAWA_CACHE__CELL_DEGREES: `${cellDegrees}`,
      ABOHAWA_CACHE__MEMORY: '2GiB',
      ABOHAWA_WEATHER__HOURLY_HOURS: '24',
      ABOHAWA_OPS__TOKEN: token,
    })
    progress('writes the keys')
    const store = await openStoreOf(scope, env)
    const { presented, ids, subscriberId } = await writeKeys(store, keyCount)

    const { urls, ask } = await startWatched(scope, dataBytes, env)
    const { api = '', ops = '' } = urls
    const use = async (requests: readonly string[], connections: number): Promise<void> => {
      const callers = await openCallers(scope, api, '', connections)
      let next = 0
      await Promise.all(
        callers.map(async caller => {
          for (let i = next++; i < requests.length; i = next++) {
            const { status } = await caller.send(requests[i] ?? '', presented[i] ?? '')
            if (status !== 200) throw new Error(`${requests[i]?.slice(0, 60)} was answered ${status}`)
          }
        }),
      )
    }
    // Which warms the gateway too.
    progress('uses the keys')
    await use(
      presented.map(() => '/api/v1/locations?type=division'),
      32,
    )

    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const lists = Array.from({ length: cellCount / cellsEach }, (_, i) => listOfCells(i * cellsEach))
    const measure = async ([method, path, body]: Route): Promise<{ status: number; turn: number }> => {
      await ask({})
      await pause(50)
      const sent = { method, headers, ...(method === 'POST' && { body: body ? JSON.stringify(body) : '{}' }) }
      const response = await fetch(ops + path, sent)
      await response.arrayBuffer()
      if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}`)
      await pause(method === 'POST' ? settleMs : 50)
      return { status: response.status, turn: (await ask({})).turn }
    }
    const measured: { name: string; status: number; turn: number }[] = []
    // The key of the last caller, because cells are loaded with the first ones.
    const id = ids.at(-1) ?? ''
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}, loads the cells`)
      await use(lists, 4)
      await pause(settleMs)
      for (const route of routesFor(id, subscriberId)) {
        const [method, path, body] = route
        const name = `${method} ${path}${body ? ` ${JSON.stringify(body)}` : ''}`.replaceAll(id, 'ID')
        progress(`round ${round} of ${rounds}, ${name}`)
        measured.push({ name: name.replaceAll(subscriberId, 'ID'), ...(await measure(route)) })
      }
    }
    const lines = [...Map.groupBy(measured, ({ name }) => name)].map(([name, each]) => ({
      name,
      status: each[0]?.status,
      turn: median(each.map(({ turn }) => turn)),
    }))
    const longest = lines.reduce((one, other) => (other.turn > one.turn ? other : one))
    return {
      findings: [
        judged(
          'longest turn of the event loop, of all requests of operators',
          `≤ ${longestTurnMs} ms`,
          longest.turn <= longestTurnMs,
          `${ms(longest.turn)} of processor time (${longest.name})`,
          lines,
        ),
      ],
      table: {
        head: ['request', 'status', 'longest turn'],
        lines: lines
          .toSorted((one, other) => other.turn - one.turn)
          .slice(0, shown)
          .map(({ name, status, turn }) => [`\`${name}\``, `${status}`, ms(turn)]),
      },
    }
  },
}
