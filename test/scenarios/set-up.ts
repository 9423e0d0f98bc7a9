// Building blocks of fleet scenarios for tests and benchmarks: gateway processes, keys, the places and cells of the
// catalogue, a request function, and metrics.

import { readFileSync } from 'node:fs'
import { Pool, request } from 'undici'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { type Running, runCommand, startCommand } from '../support/process.ts'
import type { ProviderProcess } from '../support/provider-process.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import { usualCatalogue, wholeCatalogue } from '../support/usual-catalogue.ts'

export type Env = Record<string, string>

export const catalogueFile: string = wholeCatalogue

type Place = { type: string; id: string; latitude: number; longitude: number }

/** The places of the whole catalogue, grouped by their cell of the default grid. */
export const placesByCell = (): { cell: Cell; paths: string[] }[] => {
  const grid = createGrid(0.1)
  const { locations } = JSON.parse(readFileSync(catalogueFile, 'utf8')) as { locations: Place[] }
  const cells = new Map<string, { cell: Cell; paths: string[] }>()
  for (const { type, id, latitude, longitude } of locations) {
    const cell = grid.cellOf(latitude, longitude)
    const entry = cells.get(cell.id) ?? { cell, paths: [] }
    entry.paths.push(`/api/v1/weather/${type}/${id}`)
    cells.set(cell.id, entry)
  }
  return [...cells.values()]
}

/** No budget limits, for scenarios that do not test them. */
export const noBudget: Env = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
}
export const plentyOfQuota: Env = { ABOHAWA_QUOTA__TIERS__ENTERPRISE: '1000000000' }

export const processEnv = (providerUrl: string, more: Env): Env => ({
  ABOHAWA_PROVIDER__BASE_URL: providerUrl,
  ABOHAWA_CATALOGUE__PATH: usualCatalogue,
  ABOHAWA_SERVER__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '0s',
  ABOHAWA_OPS__PORT: '0',
  ABOHAWA_LOG__ACCESS: 'false',
  ABOHAWA_LOG__LEVEL: 'error',
  // What is measured is fetched once and kept, whatever runs come meanwhile.
  ABOHAWA_CACHE__FRESHNESS: 'age',
  ...noBudget,
  ...plentyOfQuota,
  ...more,
})

export const createKey = async (env: Env): Promise<string> => {
  const given = 'keys create --create-store --subscriber Bench --tier enterprise --json'
  const { code, stdout, stderr } = await runCommand(given.split(' '), env)
  if (code !== 0) throw new Error(`no key: ${stderr}`)
  return (JSON.parse(stdout) as { key: string }).key
}

export const startProcess = (scope: Teardown, env: Env): Promise<Running> =>
  startCommand(scope, ['serve'], ['api', 'ops'], env)

export type SendRequest = (
  path: string,
) => Promise<{ status: number; ms: number; cache: string; text: string }>

/** Returns a function that sends requests to a gateway over kept connections. */
export const senderTo = (scope: Teardown, apiUrl: string, key: string, connections = 32): SendRequest => {
  const pool = new Pool(apiUrl, { connections })
  scope.teardown(() => pool.destroy())
  const headers = { 'x-api-key': key }
  return async path => {
    const started = performance.now()
    const answer = await pool.request({ path, method: 'GET', headers })
    const text = await answer.body.text()
    const cache = String(answer.headers['cache-status'] ?? '')
    return { status: answer.statusCode, ms: performance.now() - started, cache, text }
  }
}

/** Runs `act` on every item, `atOnce` at a time. */
export const forAll = async <Item>(
  items: readonly Item[],
  atOnce: number,
  act: (item: Item, index: number) => Promise<unknown>,
): Promise<void> => {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) await act(items[i] as Item, i)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
}

/** The value of a metric, named with its labels as exposed; 0 when it is missing. */
export const metric = async (opsUrl: string, name: string): Promise<number> => {
  const text = await (await request(`${opsUrl}/metrics`)).body.text()
  const line = text.split('\n').find(one => one.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

/** Waits until a gateway has no provider request in flight or waiting. */
export const quiet = async (provider: ProviderProcess, opsUrl: string): Promise<void> => {
  let [still, points] = [0, -1]
  await until('the provider is quiet', async () => {
    const state = await provider.state()
    const waiting = await metric(opsUrl, 'abohawa_provider_waiting_cells')
    const isStill = state.inFlight === 0 && waiting === 0 && state.points === points
    still = isStill ? still + 1 : 0
    points = state.points
    return still >= 2
  })
}

export const isoOf = (instant: number): string => new Date(instant).toISOString()
