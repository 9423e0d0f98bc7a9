// Passes requests through the parts of one or several gateways, on the product's catalogue; for tests.

import type { Catalogue } from '../../../../src/catalogue/catalogue.ts'
import { readCatalogue } from '../../../../src/catalogue/live-catalogue.ts'
import { variableOf } from '../../../../src/config/environment.ts'
import type { Config } from '../../../../src/config/schema.ts'
import { schemaAt } from '../../../../src/config/tree.ts'
import { settingCases } from '../../../../tools/load/setting-grid.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import type { CaseFigures } from '../../../../tools/load/what-if/counters.ts'
import {
  type SimulateOptions,
  type SimulateParts,
  simulate,
} from '../../../../tools/load/what-if/simulate.ts'
import {
  readSimulatedTraffic,
  type SimulatedTraffic,
} from '../../../../tools/load/what-if/simulated-traffic.ts'
import { withConstants } from '../../../support/constants.ts'

const usual: SimulateOptions = { instances: 1, warmUpMs: 0, warm: false, latencyMs: 0 }

let catalogue: Catalogue | undefined

export const simulateOn = async (
  config: Config,
  traffic: SimulatedTraffic,
  options: Partial<SimulateOptions & Pick<SimulateParts, 'skips' | 'onProgress'>> = {},
): Promise<CaseFigures> => {
  const { path } = config.catalogue
  catalogue ??= await readCatalogue(path)
  const { onProgress = () => {}, skips, ...given } = options
  const parts = { catalogue, onProgress, ...(skips === undefined ? {} : { skips }) }
  const figures = await simulate(config, traffic, { ...usual, ...given }, parts)
  if (!figures) throw new Error('it was ended')
  return figures
}

export const trafficOf = (requests: readonly TrafficRequest[]): Promise<SimulatedTraffic> =>
  readSimulatedTraffic(
    (async function* () {
      yield requests
    })(),
  )

/** Settings and constants as `--case` takes settings: what is no setting is a constant. */
const configOf = (given: string): Config => {
  const words = given.split(' ')
  const isSetting = (word: string): boolean => schemaAt((word.split('=')[0] ?? '').split('.')) !== undefined
  const constants = words
    .filter(word => !isSetting(word))
    .map(word => {
      const [path = '', value = ''] = word.split('=')
      return [variableOf(path.split('.')).replace('ABOHAWA_', 'ABOHAWA_TEST_'), value]
    })
  const [only] = withConstants(Object.fromEntries(constants), () =>
    settingCases({ case: [words.filter(isSetting).join(' ')] }, { files: [], env: {} }),
  )
  if (!only) throw new Error('no case')
  return only.config
}

/** @param given as `configOf` takes it */
export const trySetting = async (
  given: string,
  requests: readonly TrafficRequest[],
  options: Parameters<typeof simulateOn>[2] = {},
): Promise<CaseFigures> => {
  return simulateOn(configOf(given), await trafficOf(requests), options)
}
