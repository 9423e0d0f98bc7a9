// Keeps requests that are further out of place than a window sorts, in sorted files of a folder of its own, and gives them
// back as streams in the order of arrival: an external sort of what is rare, in bounded memory.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InputError } from '../../errors.ts'
import { readTraffic } from './read-traffic.ts'
import { lineOf, type TrafficRequest } from './traffic-request.ts'

export type LateRequests = {
  /** Takes requests, and writes what is held if that is much. @throws InputError when there are too many */
  add(requests: readonly TrafficRequest[]): Promise<void>
  count(): number
  streams(): AsyncGenerator<TrafficRequest[], void, undefined>[]
  /** Removes the files. */
  close(): Promise<void>
}

const heldAtMost = 100_000
// Of their paths, in characters.
const heldTextAtMost = 64 * 1024 * 1024
// Each file is read at the same time.
const maxFiles = 500

export const createLateRequests = (): LateRequests => {
  let held: TrafficRequest[] = []
  let folder: string | undefined
  let count = 0
  let text = 0
  const files: string[] = []
  return {
    add: async requests => {
      for (const request of requests) {
        held.push(request)
        text += request.path.length
      }
      count += requests.length
      if (held.length < heldAtMost && text < heldTextAtMost) return
      if (files.length >= maxFiles)
        throw new InputError(
          `more than ${count - held.length} requests are out of order; sort the file first, or give a larger --window`,
        )
      folder ??= await mkdtemp(join(tmpdir(), 'abohawa-traffic-'))
      const file = join(folder, `${files.length}.ndjson`)
      await writeFile(file, linesOf(held.sort(byArrival)), { mode: 0o600 })
      files.push(file)
      held = []
      text = 0
    },
    count: () => count,
    streams: () => [
      ...files.map(file => readTraffic([file], { window: 1 }).batches()),
      (async function* () {
        yield held.sort(byArrival)
      })(),
    ],
    close: async () => {
      if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}

const linesAtOnce = 2_000

function* linesOf(requests: readonly TrafficRequest[]): Generator<string> {
  for (let at = 0; at < requests.length; at += linesAtOnce)
    yield requests
      .slice(at, at + linesAtOnce)
      .map(request => `${lineOf(request)}\n`)
      .join('')
}

const byArrival = (one: TrafficRequest, other: TrafficRequest): number => one.at - other.at
