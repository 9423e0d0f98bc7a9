// A thread that tries settings on the traffic, by the indexes that come as messages. Its progress is in shared memory.

import { parentPort, workerData } from 'node:worker_threads'
import { readCatalogue } from 'abohawa/catalogue/live-catalogue.ts'
import { messageOf } from 'abohawa/common/errors.ts'
import type { Config } from 'abohawa/config/schema.ts'
import type { CaseFigures } from './counters.ts'
import { type SimulateOptions, simulate } from './simulate.ts'
import type { SimulatedTraffic } from './simulated-traffic.ts'

export type WorkerTask = {
  readonly trace: SimulatedTraffic
  readonly options: SimulateOptions
  readonly configs: readonly Config[]
  /** The share of the time that has passed, by case. */
  readonly progress: Float64Array
}

export type WorkerAnswer =
  | { readonly case: number; readonly figures: CaseFigures }
  | { readonly case: number; readonly failure: string }

const { trace, options, configs, progress } = workerData as WorkerTask

const run = async (at: number): Promise<WorkerAnswer> => {
  try {
    const config = configs[at] as Config
    const catalogue = await readCatalogue(config.catalogue.path)
    const figures = await simulate(config, trace, options, {
      catalogue,
      onProgress: share => {
        progress[at] = share
      },
    })
    return { case: at, figures }
  } catch (error) {
    return { case: at, failure: messageOf(error) }
  }
}

parentPort?.on('message', (at: number) => {
  void run(at).then(answer => parentPort?.postMessage(answer))
})
