// Replaces wrk where it is not installed: callers in a process of their own that send the next request on the response to
// the last. Reads the workload from a file and prints one line of JSON.

import { readFile } from 'node:fs/promises'
import { openCallers } from '../../test/scenarios/callers.ts'
import type { Workload } from './load.ts'
import { loadedOf } from './loaded.ts'

const {
  url,
  paths,
  keys,
  headers,
  headersInTurn = [],
  seconds,
  atOnce,
} = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8')) as Workload & {
  seconds: number
  atOnce: number
}

const teardowns: (() => unknown)[] = []
const callers = await openCallers({ teardown: fn => void teardowns.push(fn) }, url, '', atOnce)
const started = performance.now()
const end = started + seconds * 1000
const times: number[] = []
let [sent, wrong] = [0, 0]
await Promise.all(
  callers.map(async caller => {
    while (performance.now() < end) {
      const turn = sent++
      const path = paths[turn % paths.length] ?? '/'
      const given = { ...headers, ...headersInTurn[turn % headersInTurn.length] }
      const { status, ms } = await caller.send(path, keys[turn % keys.length] ?? 'none', given)
      if (status === 0 || status >= 400) wrong += 1
      // A closed connection sends nothing more.
      if (status === 0) return
      times.push(ms)
    }
  }),
)
process.stdout.write(`${JSON.stringify(loadedOf(times, started, wrong))}\n`)
for (const teardown of teardowns) teardown()
