// The formats of traffic files, and which of them a file is in: found by its first lines, since names of logs say little.
// Each format reads chunks of bytes into requests; what a line means stands in a file for each format.

import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import { requestOfAccessLog } from './access-log-line.ts'
import {
  type CommonLine,
  createSpread,
  isCommonLogLine,
  isOwnNginxLine,
  requestOfCommonLog,
  requestOfOwnNginx,
} from './common-log-line.ts'
import { type Format, type FormatName, formatNames, type Observer } from './format.ts'
import { readGor } from './gor.ts'
import { readHar } from './har.ts'
import { linesOf, unwrapped } from './text-lines.ts'
import { requestOf, type TrafficRequest } from './traffic-request.ts'

/** Undefined for a line that is right and holds no request. @throws InputError */
type ReadLine = (line: string, observer: Observer) => TrafficRequest | undefined

/** The requests of lines, many at a time: a faulty line is reported, and a line without a request is counted as skipped. */
async function* readLines<Read>(
  chunks: AsyncIterable<Buffer>,
  { onFault, onSkipped }: Observer,
  readLine: (line: string) => Read | undefined,
): AsyncGenerator<Read[], void, undefined> {
  for await (const { from, lines } of linesOf(chunks, onFault)) {
    const found: Read[] = []
    let skipped = 0
    for (const [i, wrapped] of lines.entries()) {
      const line = unwrapped(wrapped)
      if (line === '') continue
      try {
        const read = readLine(line)
        if (read) found.push(read)
        else skipped += 1
      } catch (thrown) {
        if (!(thrown instanceof InputError)) throw thrown
        onFault(from + i, thrown.message)
      }
    }
    if (skipped > 0) onSkipped(skipped)
    yield found
  }
}

const linesFormat = (name: FormatName, matches: (begin: string) => boolean, readLine: ReadLine): Format => ({
  name,
  matches,
  async *read(chunks, observer) {
    for await (const requests of readLines(chunks, observer, line => readLine(line, observer)))
      if (requests.length > 0) yield requests
  },
})

const commonFormat = (
  name: FormatName,
  isLine: (line: string) => boolean,
  readLine: (line: string) => CommonLine | undefined,
): Format => ({
  name,
  matches: begin => begin.split('\n', 100).some(isLine),
  async *read(chunks, observer) {
    const spread = createSpread()
    for await (const lines of readLines(chunks, observer, readLine)) yield lines.map(spread)
  },
})

const anyLine = (pattern: RegExp) => (begin: string) =>
  begin.split('\n', 100).some(line => pattern.test(line))

/** The name of our own. */
export const ownFormat = 'ndjson'

const formats: readonly Format[] = [
  linesFormat('access-log', anyLine(/\{"level":"[a-z]+","time":"/), requestOfAccessLog),
  linesFormat(ownFormat, anyLine(/^\s*\{.*"at"\s*:\s*"/), requestOf),
  { name: 'har', matches: begin => /^\s*\{\s*"log"\s*:(?!\s*")/.test(begin), read: readHar },
  { name: 'gor', matches: begin => /^\s*[123] \S+ \d{10,20}(?: -?\d+)?\r?\n/.test(begin), read: readGor },
  commonFormat('combined', isCommonLogLine, requestOfCommonLog),
  commonFormat('nginx', isOwnNginxLine, requestOfOwnNginx),
]

/** @throws InputError for a name that is none of a format */
export const formatNamed = (name: string): Format => {
  const found = formats.find(format => format.name === name)
  if (!found) throw new InputError(`the format is ${quoted(name)}; allowed: ${formatNames.join(', ')}`)
  return found
}

/** @param begin of the file, unpacked. @throws InputError when it is in none of the formats */
export const formatOf = (begin: string): Format => {
  const text = begin
    .replace(/^\ufeff/, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(unwrapped)
    .join('\n')
  const found = formats.find(({ matches }) => matches(text))
  if (!found)
    throw new InputError(
      `its format is unknown, it begins with ${quoted(begin)}; --format names one of ${formatNames.join(', ')}`,
    )
  return found
}
