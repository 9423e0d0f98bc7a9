// The formats of traffic files, and which of them a file is in: found by its first lines, since names of logs say little.
// Each format reads pieces of bytes into requests; what a line means stands in a file for each format.

import { InputError } from '../errors.ts'
import { quoted } from '../outside-text.ts'
import { requestOfAccessLog } from './access-log-line.ts'
import { type LineFault, linesOf } from './text-lines.ts'
import { requestOf, type TrafficRequest } from './traffic-request.ts'

/** What a reader of a format reports beside its requests. */
export type Observer = {
  readonly onFault: LineFault
  /** So many lines are right and hold no request. */
  readonly onSkipped: (lines: number) => void
}

export type Format = {
  readonly name: string
  /** Whether a file whose first bytes are this text is in this format. */
  readonly matches: (begin: string) => boolean
  readonly read: (
    pieces: AsyncIterable<Buffer>,
    observer: Observer,
  ) => AsyncGenerator<TrafficRequest[], void, undefined>
}

/** Undefined for a line that is right and holds no request. @throws InputError */
export type ReadLine = (line: string) => TrafficRequest | undefined

const linesFormat = (name: string, matches: (begin: string) => boolean, readLine: ReadLine): Format => ({
  name,
  matches,
  async *read(pieces, { onFault, onSkipped }) {
    for await (const { from, lines } of linesOf(pieces, onFault)) {
      const requests: TrafficRequest[] = []
      let skipped = 0
      for (const [i, line] of lines.entries()) {
        if (line === '') continue
        try {
          const request = readLine(line)
          if (request) requests.push(request)
          else skipped += 1
        } catch (thrown) {
          if (!(thrown instanceof InputError)) throw thrown
          onFault(from + i, thrown.message)
        }
      }
      if (skipped > 0) onSkipped(skipped)
      if (requests.length > 0) yield requests
    }
  },
})

const anyLine = (pattern: RegExp) => (begin: string) =>
  begin.split('\n', 100).some(line => pattern.test(line))

export const formats: readonly Format[] = [
  linesFormat('ndjson', anyLine(/^\{"at":"/), requestOf),
  linesFormat('access-log', anyLine(/\{"level":"[a-z]+","time":"/), requestOfAccessLog),
]

const names = formats.map(({ name }) => name)

/** @throws InputError for a name that is none of a format */
export const formatNamed = (name: string): Format => {
  const found = formats.find(format => format.name === name)
  if (!found) throw new InputError(`the format is ${quoted(name)}; allowed: ${names.join(', ')}`)
  return found
}

/** @param begin of the file, unpacked. @throws InputError when it is in none of the formats */
export const formatOf = (begin: string): Format => {
  const found = formats.find(({ matches }) => matches(begin))
  if (!found)
    throw new InputError(
      `its format is unknown, it begins with ${quoted(begin)}; --format names one of ${names.join(', ')}`,
    )
  return found
}
