// Several processes on one port and one embedded store, restarted one after the other while consumers send: how many requests were
// answered, which were not, and what the store counted. As a script it does so for the separate network in which it is started.

import { setTimeout as pause } from 'node:timers/promises'
import { Agent, type Dispatcher, RetryAgent } from 'undici'
import { runCommand } from '../support/process.ts'
import { inScope, type Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import { startProcesses } from './processes.ts'
import { createKey, processEnv } from './set-up.ts'

export type RestartResult = {
  readonly answered: number
  /** Statuses other than 200, and codes of connections that ended without a response. */
  readonly faults: readonly string[]
  /** Units of the key in the store, at the end of all processes. */
  readonly counted: number
  readonly exitCode: number | null
}

const path = '/api/v1/locations?type=division&limit=1'
const callers = 24

/** @param retries how often a request without a response is sent again, as the proxy in front does it */
export const restartUnderLoad = async (
  scope: Teardown,
  folder: string,
  retries: number,
): Promise<RestartResult> => {
  const env = processEnv('http://127.0.0.1:9', {
    ABOHAWA_STORE__PATH: `${folder}/store.db`,
    // Longer than a busy machine keeps a caller from its turn: a request on a connection that ends meanwhile is lost.
    ABOHAWA_SERVER__DRAIN_FOR: '2s',
  })
  const key = await createKey(env)
  const running = await startProcesses(scope, 3, { ...env, ABOHAWA_LOG__LEVEL: 'info' })
  let isOver = false
  let answered = 0
  const faults: string[] = []
  const send = async (dispatcher: Dispatcher, reset: boolean): Promise<void> => {
    try {
      const { statusCode, body } = await dispatcher.request({
        origin: running.api,
        path,
        method: 'GET',
        headers: { 'x-api-key': key },
        reset,
      })
      await body.dump()
      if (statusCode === 200) answered += 1
      else faults.push(String(statusCode))
    } catch (error) {
      faults.push((error as { code?: string }).code ?? String(error))
    }
  }
  // Half of them keep their connections, half open one for each request.
  const sending = Promise.all(
    Array.from({ length: callers }, async (_, i) => {
      const agent = new Agent({ pipelining: 1 })
      const dispatcher =
        retries === 0 ? agent : new RetryAgent(agent, { maxRetries: retries, minTimeout: 20 })
      while (!isOver) {
        await send(dispatcher, i % 2 === 0)
        // The processor is for the new processes too.
        await pause(i % 2 === 0 ? 5 : 40)
      }
      await agent.close()
    }),
  )
  running.child.kill('SIGALRM')
  const areRestarted = () => running.lines.some(line => line.includes('"processes restarted"'))
  await until('all are restarted', areRestarted)
  isOver = true
  await sending
  running.child.kill('SIGTERM')
  const exitCode = await running.exited
  const { stdout } = await runCommand(['keys', 'list', '--json'], env)
  const [{ id }] = JSON.parse(stdout) as [{ id: string }]
  const usage = JSON.parse((await runCommand(['keys', 'usage', id, '--json'], env)).stdout) as {
    days: { used: number }[]
  }
  return { answered, faults, counted: usage.days.reduce((sum, { used }) => sum + used, 0), exitCode }
}

const [, script, folder] = process.argv
if (import.meta.filename === script && folder !== undefined) {
  const result = await inScope(scope => restartUnderLoad(scope, folder, 0))
  process.stdout.write(JSON.stringify(result))
}
