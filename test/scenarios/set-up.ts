// Building blocks of fleet scenarios for tests and benchmarks: gateway processes, keys, the places and cells of the catalogue, and
// metrics.

import { readFileSync } from 'node:fs'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { noBudget, onFreePorts, plentyOfQuota } from '../support/gateway-env.ts'
import { metricOf } from '../support/metric.ts'
import { type Running, runCommand, startCommand } from '../support/process.ts'
import type { Teardown } from '../support/teardown.ts'
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

export const processEnv = (providerUrl: string, more: Env): Env => ({
  ABOHAWA_PROVIDER__BASE_URL: providerUrl,
  ABOHAWA_CATALOGUE__PATH: usualCatalogue,
  ABOHAWA_LOG__ACCESS: 'false',
  ABOHAWA_LOG__LEVEL: 'error',
  // What is measured is fetched once and kept, whatever runs come meanwhile.
  ABOHAWA_CACHE__FRESHNESS: 'age',
  ...{ ...onFreePorts, ...noBudget, ...plentyOfQuota, ...more },
})

export const createKey = async (env: Env, tier = 'enterprise'): Promise<string> => {
  const given = `keys create --create-store --subscriber Bench --tier ${tier} --json`
  const { code, stdout, stderr } = await runCommand(given.split(' '), env)
  if (code !== 0) throw new Error(`no key: ${stderr}`)
  return (JSON.parse(stdout) as { key: string }).key
}

export const startProcess = (scope: Teardown, env: Env): Promise<Running> =>
  startCommand(scope, ['serve'], ['api', 'ops'], env)

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
export const metric = async (opsUrl: string, name: string): Promise<number> =>
  (await metricOf(opsUrl, name)) ?? 0
