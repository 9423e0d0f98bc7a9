// Several gateways that share a port, started by one command, for tests of `serve --processes`.

import { freePort } from '../support/listening.ts'
import { type Running, startCommand } from '../support/process.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import type { Env } from './set-up.ts'

type Line = {
  readonly msg?: string
  readonly process?: number
  readonly pid?: number
  readonly listener?: string
  readonly url?: string
}

export type RunningProcesses = Running & {
  readonly api: string
  /** Every line of the log so far that is JSON. */
  logged(): Line[]
  /** The ops address that a process logged last, by its number from 1. */
  ops(number: number): string
  /** The process ids of those that were started last, in the order of their numbers. */
  pids(): number[]
  /** Resolves when so many listeners of the API have been opened since the start. */
  opened(times: number): Promise<unknown>
}

/** Resolves when all of them serve. */
export const startProcesses = async (
  scope: Teardown,
  processes: number,
  env: Env,
): Promise<RunningProcesses> => {
  const port = await freePort()
  const running = await startCommand(scope, ['serve', '--processes', String(processes)], ['api', 'ops'], {
    ...{ ABOHAWA_OPS__PORT: '0', ...env },
    ABOHAWA_SERVER__PORT: String(port),
  })
  const logged = () =>
    running.lines.filter(line => line.startsWith('{')).map(line => JSON.parse(line) as Line)
  const numbers = Array.from({ length: processes }, (_, i) => i + 1)
  const openings = () => logged().filter(({ listener }) => listener === 'api').length
  const opened = (times: number) => until(`${times} have opened the port`, () => openings() >= times)
  await opened(processes)
  return {
    ...running,
    api: running.urls.api ?? '',
    logged,
    ops: number =>
      logged().findLast(({ listener, process }) => listener === 'ops' && process === number)?.url ?? '',
    pids: () => {
      const started = logged().filter(({ msg }) => msg === 'process started')
      return numbers.map(number => started.findLast(({ process }) => process === number)?.pid ?? 0)
    },
    opened,
  }
}
