// Reads traffic files, passes their requests on, writes one file of them, and reports
// faults, gaps and order. Requests that are further out of order than the sorting window are sorted by reading the files a second
// time; where that is impossible, they are written unsorted, with a remark.

import { stat } from 'node:fs/promises'
import { InputError } from '../../errors.ts'
import { merged } from '../../load/traffic/arrival-order.ts'
import { standardInput, standardOutput } from '../../load/traffic/file-bytes.ts'
import { createGaps } from '../../load/traffic/gaps.ts'
import { createLateRequests, type LateRequests } from '../../load/traffic/late-requests.ts'
import { createPseudonyms } from '../../load/traffic/pseudonyms.ts'
import { readTraffic, type Traffic } from '../../load/traffic/read-traffic.ts'
import type { TrafficRequest } from '../../load/traffic/traffic-request.ts'
import { textOf, writeText } from '../../load/traffic/write-traffic.ts'
import { interruption } from '../interruption.ts'
import { counted, leftText, type Terminal } from '../terminal.ts'
import type { ImportOptions } from './traffic-options.ts'
import { reportRewrite } from './traffic-rewrite-text.ts'

type Batches = AsyncIterable<readonly TrafficRequest[]>

// A gap that is said, where none is given.
const reportedGapMs = 5 * 60_000

/**
 * Resolves to the exit code.
 * @param pass makes the requests to write of those that were read; called anew for a second pass
 * @throws InputError, with `strict` for the first fault too
 */
export const rewrite = async (
  terminal: Terminal,
  files: readonly string[],
  { out, force, format, host, window, strict, longestGap }: ImportOptions,
  pass: (batches: Batches) => AsyncGenerator<readonly TrafficRequest[]>,
): Promise<number> => {
  const faults = createFaults(terminal, strict === true)
  const late = out !== standardOutput && (await areRegular(files)) ? createLateRequests() : undefined
  // One for both passes, so that a key has one name.
  const pseudonyms = createPseudonyms()
  const read = (onLate: LateRequests['add'] | undefined, onFault?: typeof faults.add) =>
    readTraffic(files, {
      pseudonyms,
      host,
      format,
      window,
      ...(onFault ? { onFault } : {}),
      ...(onLate ? { onLate } : {}),
    })
  const traffic = read(late?.add, faults.add)
  const state = { isStopped: false, written: 0, first: undefined as number | undefined, last: 0 }
  const shortest = longestGap ?? reportedGapMs
  let gaps = createGaps(shortest, longestGap)
  const watched = watch(terminal, traffic, await sizeOfFiles(files))

  // From what is read to text; with a count of what is written, anew for each pass.
  const textOfAll = (batches: Batches): AsyncGenerator<string> => {
    state.written = 0
    state.first = undefined
    gaps = createGaps(shortest, longestGap)
    const observed = async function* (from: Batches) {
      for await (const batch of from) {
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
    return textOf(observed(gaps.pass(pass(batches))))
  }

  const firstText = async function* () {
    const batches = traffic.batches()
    yield* textOfAll(late ? keptOpen(batches) : batches)
    // Where what was wanted ended early: what stands further on may belong before it.
    if (!late) return
    for await (const _ of batches) {
      if (state.isStopped) throw new Interrupted()
      watched(state.written)
    }
  }

  const sortedText = async function* (found: LateRequests) {
    let count = 0
    const again = read(async requests => {
      count += requests.length
    })
    yield* textOfAll(merged([again.batches(), ...found.streams()]))
    // There are fewer where reading ended early, having what was wanted.
    if (count > found.count())
      throw new InputError('a file changed while it was read; read it when it is complete')
  }

  void interruption().then(() => {
    state.isStopped = true
  })
  try {
    await writeText(out, firstText(), {
      force: force === true,
      again: () => (late === undefined || late.count() === 0 ? undefined : sortedText(late)),
    })
  } catch (thrown) {
    if (!(thrown instanceof Interrupted)) throw thrown
    terminal.progress('')
    const what = out === standardOutput ? 'standard output has a part of it' : 'nothing was written'
    terminal.remark(`Interrupted after ${counted(state.written)} requests: ${what}.`)
    return 1
  } finally {
    await late?.close()
  }
  terminal.progress('')
  faults.end()
  const { written, first, last } = state
  reportRewrite(terminal, {
    ...{ out, written, first, last, isSorted: late !== undefined },
    summary: traffic.summary(),
    gaps: { ...gaps.found(), shortestMs: shortest, areCut: longestGap !== undefined },
  })
  return 0
}

class Interrupted extends Error {}

/** The same batches; who takes no more of them leaves the rest to be read. */
async function* keptOpen(batches: AsyncGenerator<TrafficRequest[]>): AsyncGenerator<TrafficRequest[]> {
  for (let next = await batches.next(); !next.done; next = await batches.next()) yield next.value
}

/** Whether each can be read a second time. */
const areRegular = async (files: readonly string[]): Promise<boolean> => {
  for (const file of files)
    if (file === standardInput || !(await stat(file).catch(() => undefined))?.isFile()) return false
  return true
}

/** Of all files, packed as they are; undefined where one has no size. */
export const sizeOfFiles = async (files: readonly string[]): Promise<number | undefined> => {
  let size = 0
  for (const file of files) {
    const found = file === standardInput ? undefined : await stat(file).catch(() => undefined)
    if (!found?.isFile()) return undefined
    size += found.size
  }
  return size
}

const progressEveryMs = 250

/** Shows how far reading is, with what is left of it where the files have a size. */
export const watch = (
  terminal: Terminal,
  traffic: Traffic,
  size: number | undefined,
): ((requests: number) => void) => {
  const began = performance.now()
  let shownAt = began
  return requests => {
    const now = performance.now()
    if (now - shownAt < progressEveryMs) return
    shownAt = now
    const share = size ? Math.min(1, traffic.bytesRead() / size) : undefined
    const how =
      share === undefined
        ? ''
        : `, ${Math.floor(share * 100)} % read${leftText(share, (now - began) / 1_000)}`
    terminal.progress(`${counted(requests)} requests${how}`)
  }
}

const shownFaults = 10

/** Shows the first faulty lines in full, and counts the others. */
export const createFaults = (terminal: Terminal, isStrict: boolean) => {
  let count = 0
  return {
    add: ({ file, line, reason }: { file: string; line: number; reason: string }): void => {
      const sentence = `${file}:${line}: ${reason}`
      if (isStrict) throw new InputError(sentence)
      count += 1
      if (count > shownFaults) return
      terminal.progress('')
      terminal.remark(sentence)
    },
    end: (): void => {
      if (count > shownFaults) terminal.remark(`and ${counted(count - shownFaults)} more faulty lines.`)
    },
  }
}
