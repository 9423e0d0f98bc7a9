// A process of its own that requests warm cells at a steady rate, whether the last response has come or not:
// `node steady-hits.ts <url> <key> <path> …`. Tells its parent, when asked, the times of the responses since the last question.

import { setTimeout as pause } from 'node:timers/promises'
import { openCallers } from '../../test/scenarios/callers.ts'

/** Times in ms, each from the instant at which the request was due. */
export type SteadyHits = { readonly times: readonly number[]; readonly failed: number }

const everyMs = 4
const callersAtMost = 100

const [url = '', key = '', ...paths] = process.argv.slice(2)
const free = await openCallers({ teardown: () => {} }, url, key, callersAtMost)
let times: number[] = []
let failed = 0
process.on('message', () => {
  process.send?.({ times, failed } satisfies SteadyHits)
  times = []
  failed = 0
})
process.on('disconnect', () => process.exit())

const send = async (due: number, path: string): Promise<void> => {
  const caller = free.pop()
  if (!caller) {
    failed += 1
    return
  }
  const { status } = await caller.send(path)
  if (status === 200) times.push(performance.now() - due)
  else failed += 1
  free.push(caller)
}
let sent = 0
for (let due = performance.now(); ; due += everyMs) {
  await pause(Math.max(0, due - performance.now()))
  void send(due, paths[sent++ % paths.length] ?? '/')
}
