// Passes requests through the parts of one or several gateways, on the product's catalogue; for tests.

import type { Catalogue } from '../../../src/catalogue/catalogue.ts'
import { createCatalogue } from '../../../src/catalogue/catalogue.ts'
import { catalogueFile } from '../../../src/catalogue/catalogue-file.ts'
import { readSnapshot } from '../../../src/catalogue/snapshot-reader.ts'
import type { Config } from '../../../src/config/schema.ts'
import { settingCases } from '../../../src/config/setting-grid.ts'
import type { TrafficRequest } from '../../../src/load/traffic/traffic-request.ts'
import { type SimulateOptions, simulate } from '../../../src/load/what-if/simulate.ts'
import { readTrace, type Trace } from '../../../src/load/what-if/trace.ts'
import type { CaseFigures } from '../../../src/load/what-if/what-if-result.ts'

const usual: SimulateOptions = { instances: 1, warmUpMs: 0, warm: false, latencyMs: 0 }

let catalogue: Catalogue | undefined

export const simulateOn = async (
  config: Config,
  trace: Trace,
  options: Partial<SimulateOptions> = {},
): Promise<CaseFigures> => {
  const { path, bounds } = config.catalogue
  catalogue ??= createCatalogue(await readSnapshot(catalogueFile(path), bounds))
  const parts = { catalogue, onProgress: () => {} }
  const figures = await simulate(config, trace, { ...usual, ...options }, parts)
  if (!figures) throw new Error('it was ended')
  return figures
}

export const traceOf = (requests: readonly TrafficRequest[]): Promise<Trace> =>
  readTrace(
    (async function* () {
      yield requests
    })(),
  )

/** @param settings as `--case` takes them */
export const trySetting = async (
  settings: string,
  requests: readonly TrafficRequest[],
  options: Partial<SimulateOptions> = {},
): Promise<CaseFigures> => {
  const [first] = settingCases({ case: [settings] }, { files: [], env: {} })
  if (!first) throw new Error('no case')
  return simulateOn(first.config, await traceOf(requests), options)
}
