// Reads traffic files, passes their requests on, writes one file of them, and reports faults, gaps and order.

import { standardOutput } from '../../load/traffic/file-bytes.ts'
import { createGaps } from '../../load/traffic/gaps.ts'
import { readTraffic } from '../../load/traffic/read-traffic.ts'
import type { TrafficRequest } from '../../load/traffic/traffic-request.ts'
import { textOf, writeText } from '../../load/traffic/write-traffic.ts'
import { interruption } from '../interruption.ts'
import { counted, type Terminal } from '../terminal.ts'
import type { ImportOptions } from './traffic-options.ts'
import { createFaults, sizeOfFiles, watch } from './traffic-reading.ts'
import { reportRewrite } from './traffic-rewrite-text.ts'

type Batches = AsyncIterable<readonly TrafficRequest[]>

// A gap that is said, where none is given.
const reportedGapMs = 5 * 60_000

/**
 * Resolves to the exit code.
 * @param pass makes the requests to write of those that were read
 * @throws InputError, with `strict` for the first fault too
 */
export const rewrite = async (
  terminal: Terminal,
  files: readonly string[],
  { out, force, format, host, window, strict, longestGap }: ImportOptions,
  pass: (batches: Batches) => AsyncGenerator<readonly TrafficRequest[]>,
): Promise<number> => {
  const faults = createFaults(terminal, strict === true)
  const traffic = readTraffic(files, { host, format, window, onFault: faults.add })
  const state = { isStopped: false, written: 0, first: undefined as number | undefined, last: 0 }
  const shortestMs = longestGap ?? reportedGapMs
  const gaps = createGaps(shortestMs, longestGap)
  const watched = watch(terminal, traffic, await sizeOfFiles(files))
  const observed = async function* (batches: Batches) {
    for await (const batch of batches) {
      if (state.isStopped) throw new Interrupted()
      for (const { at } of batch) {
        state.first ??= at
        state.last = Math.max(at, state.last)
      }
      state.written += batch.length
      watched(state.written)
      yield batch
    }
  }
  void interruption().then(() => {
    state.isStopped = true
  })
  try {
    await writeText(out, textOf(observed(gaps.pass(pass(traffic.batches())))), { force: force === true })
  } catch (thrown) {
    if (!(thrown instanceof Interrupted)) throw thrown
    terminal.progress('')
    const what = out === standardOutput ? 'standard output has a part of it' : 'nothing was written'
    terminal.remark(`Interrupted after ${counted(state.written)} requests: ${what}.`)
    return 1
  }
  terminal.progress('')
  faults.end()
  const { written, first, last } = state
  reportRewrite(terminal, {
    ...{ out, written, first, last },
    summary: traffic.summary(),
    gaps: { ...gaps.found(), shortestMs, areCut: longestGap !== undefined },
  })
  return 0
}

class Interrupted extends Error {}
