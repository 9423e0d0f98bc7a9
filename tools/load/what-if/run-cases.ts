// Tries every case in worker threads, which share one copy of the traffic.

import { Worker } from 'node:worker_threads'
import { InputError } from 'abohawa/common/errors.ts'
import type { Config } from 'abohawa/config/schema.ts'
import type { WorkerAnswer, WorkerTask } from './case-worker.ts'
import type { CaseFigures } from './counters.ts'
import type { SimulateOptions } from './simulate.ts'
import type { SimulatedTraffic } from './simulated-traffic.ts'

// Shown by the operating system.
const threadName = 'settings'

export const runCases = (
  configs: readonly Config[],
  trace: SimulatedTraffic,
  options: SimulateOptions,
  threads: number,
) => {
  const progress = new Float64Array(new SharedArrayBuffer(configs.length * 8))
  const figures: (CaseFigures | undefined)[] = configs.map(() => undefined)
  const workers = new Set<Worker>()
  let isStopped = false
  let next = 0

  const runThread = async (): Promise<void> => {
    const task: WorkerTask = { trace, options, configs, progress }
    const worker = new Worker(new URL('./case-worker.ts', import.meta.url), {
      name: threadName,
      workerData: task,
    })
    workers.add(worker)
    let answered: PromiseWithResolvers<WorkerAnswer | undefined> | undefined
    worker.on('message', (answer: WorkerAnswer) => answered?.resolve(answer))
    worker.on('error', error => answered?.reject(error))
    worker.on('exit', () => answered?.resolve(undefined))
    try {
      while (next < configs.length && !isStopped) {
        const at = next++
        answered = Promise.withResolvers()
        worker.postMessage(at)
        const answer = await answered.promise
        if (answer === undefined) return
        if ('failure' in answer) throw new InputError(answer.failure)
        progress[at] = 1
        figures[at] = answer.figures
      }
    } finally {
      workers.delete(worker)
      await worker.terminate()
    }
  }
  // Terminated, because a thread may not read messages for long.
  const stop = (): void => {
    isStopped = true
    for (const worker of workers) void worker.terminate()
  }

  return {
    /** By case; undefined for stopped ones. @throws InputError with the reason of a failed case */
    figures: Promise.all(
      Array.from({ length: Math.min(threads, configs.length) }, () =>
        runThread().catch(error => {
          stop()
          throw error
        }),
      ),
    ).then(() => figures),
    /** The share of the work that is done. */
    progress: (): number => progress.reduce((sum, share) => sum + share, 0) / configs.length,
    stop,
  }
}
