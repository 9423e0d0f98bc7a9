// Reads traffic files, writes the selected requests or the ids of their keys to one file, and reports what was read and written.

import { csvLine } from 'abohawa/catalogue/csv-text.ts'
import { checkTier } from 'abohawa/command-line/key-tier.ts'
import { factsText } from 'abohawa/command-line/tables.ts'
import { counted, numbered, type Terminal } from 'abohawa/command-line/terminal.ts'
import { checkOutputs, outputsOf } from 'abohawa/command-line/writable.ts'
import { isoOf } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { nameOfFile, standardOutput } from 'abohawa/common/file-bytes.ts'
import { jsonText, printable } from 'abohawa/common/outside-text.ts'
import { createGaps } from '../traffic/gaps.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'
import { textOf, writeText } from '../traffic/write-traffic.ts'
import {
  factsOfReading,
  formatsOf,
  jsonOfGaps,
  type ReadOptions,
  readFiles,
  remarkLeftOut,
  spanText,
} from './traffic-reading.ts'

export type RewriteOptions = ReadOptions & {
  readonly out: string
  readonly force?: boolean
  readonly longestGap?: number
  readonly as: 'requests' | 'keys'
  readonly tier: string
}

type Batches = AsyncIterable<readonly TrafficRequest[]>

/**
 * Resolves to the exit code.
 * @param pass selects and changes the requests to write
 * @throws InputError, with `strict` for the first fault too
 */
export const rewrite = async (
  terminal: Terminal,
  files: readonly string[],
  options: RewriteOptions,
  pass: (batches: Batches) => AsyncGenerator<readonly TrafficRequest[]>,
): Promise<number> => {
  const { out, force = false, longestGap, as, tier } = options
  if (as === 'keys') checkTier(terminal, tier)
  if (out !== standardOutput) await checkOutputs(terminal, outputsOf('--out', out), { inputs: files, force })
  const reading = await readFiles(terminal, files, options)
  const gaps = createGaps(longestGap)
  const written = { requests: 0, first: undefined as number | undefined, last: 0 }
  const requests = async function* () {
    for await (const batch of gaps.pass(pass(reading.batches()))) {
      for (const { at } of batch) {
        written.first ??= at
        written.last = Math.max(at, written.last)
      }
      written.requests += batch.length
      yield batch
    }
    if (reading.isInterrupted()) throw new Interrupted()
    if (written.requests === 0) throw new NothingLeft()
  }
  try {
    await writeText(out, as === 'keys' ? keysText(requests(), tier) : textOf(requests()), { force })
  } catch (thrown) {
    if (thrown instanceof NothingLeft) {
      const { requests } = reading.end()
      throw new InputError(
        `none of the ${counted(requests)} requests in ${files.map(nameOfFile).join(', ')} is selected`,
        { cause: thrown },
      )
    }
    if (!(thrown instanceof Interrupted)) throw thrown
    terminal.progress('')
    const isBegun = out === standardOutput && as === 'requests'
    const what = isBegun ? 'standard output has some of them' : 'nothing was written'
    terminal.remark(`Interrupted after ${counted(written.requests)} requests: ${what}.`)
    return 1
  }
  const summary = reading.end()
  if (as === 'keys') {
    remarkLeftOut(terminal, summary)
    return 0
  }
  const { first, last } = written
  const span = first === undefined ? 0 : last - first
  const { requests: read, files: _, sha256: __, ...counts } = summary
  const shown = {
    out,
    requests: written.requests,
    from: first === undefined ? null : isoOf(first),
    spanSeconds: span / 1_000,
    read,
    ...counts,
    gaps: { ...jsonOfGaps(gaps.found()), cutSeconds: gaps.found().cutMs / 1_000 },
    files: summary.files,
  }
  const where = out === standardOutput ? 'Standard output' : printable(out)
  const text = `${where} has ${numbered(written.requests, 'request', 'requests')}.\n${factsText([
    [
      'read',
      `${counted(read)} requests of ${numbered(summary.files.length, 'file', 'files')} (${formatsOf(summary)})`,
    ],
    ['from', first === undefined ? undefined : `${isoOf(first)}, for ${spanText(span)}`],
    ...Object.entries(factsOfReading(summary, gaps.found(), longestGap)),
  ])}`
  // On standard error if standard output has the traffic.
  if (out !== standardOutput) terminal.show(shown, text)
  else if (terminal.json) process.stderr.write(`${jsonText(shown)}\n`)
  else for (const line of text.split('\n')) terminal.remark(line)
  return 0
}

class Interrupted extends Error {}
class NothingLeft extends Error {}

// The maximum of `keys create --from`.
const maxKeys = 100_000
// High enough for many replays a day.
const limit = 1_000_000_000

/** The CSV that `abohawa keys create --from` reads, with the ids of the keys as external ids. @throws InputError for too many keys */
async function* keysText(batches: Batches, tier: string): AsyncGenerator<string> {
  const ids = new Set<string>()
  for await (const requests of batches) {
    for (const { key } of requests) if (key !== undefined) ids.add(key)
    if (ids.size > maxKeys)
      throw new InputError(
        `the files have more than ${counted(maxKeys)} keys, the maximum of keys create --from`,
      )
  }
  const rows = [...ids].sort().map(id => csvLine(['Load test', tier, id, limit]))
  yield [csvLine(['subscriber', 'tier', 'external_id', 'limit']), ...rows].join('')
}
