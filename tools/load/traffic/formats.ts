// The formats of traffic files, detected by the first lines of a file.

import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { type ReadLine, readLines, unwrapped } from 'abohawa/common/text-lines.ts'
import { requestOfAccessLog } from './access-log-line.ts'
import {
  type CommonLine,
  createSpread,
  ownRequest,
  quotedRequest,
  requestOfCommonLog,
  requestOfOwnNginx,
} from './common-log-line.ts'
import { type FormatName, formatNames, type Read, type Reading } from './format.ts'
import { readGor } from './gor.ts'
import { readHar } from './har.ts'
import { requestOf, type TrafficRequest } from './traffic-request.ts'

export type Format = {
  readonly name: FormatName
  /** Whether a file whose first bytes are this text is in this format. */
  readonly matches: (begin: string) => boolean
  readonly read: Read
}

const lines = (
  name: FormatName,
  form: RegExp,
  readerOf: (reading: Reading) => ReadLine<TrafficRequest>,
): Format => ({
  name,
  matches: begin => begin.split('\n', 100).some(line => form.test(line)),
  read: (chunks, reading) => readLines(chunks, reading, readerOf(reading)),
})

const spreadOver =
  (readLine: (line: string, reading: Reading) => CommonLine | undefined | null) =>
  (reading: Reading): ReadLine<TrafficRequest> => {
    const spread = createSpread()
    return line => {
      const read = readLine(line, reading)
      return read && spread(read)
    }
  }

export const ownFormat = 'ndjson'

/** Whether the JSON begins with an object that has `log`. If `log` is a text, it is a line of Docker. */
const isHar = (begin: string): boolean => {
  if (!/^\s*\{/.test(begin)) return false
  let depth = 0
  for (const [token, log] of begin.matchAll(/("log"\s*:(?!\s*"))|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (depth === 1 && log !== undefined) return true
    if (token === '{' || token === '[') depth += 1
    if (token === '}' || token === ']') depth -= 1
    if (depth === 0) return false
  }
  return false
}

const formats: readonly Format[] = [
  lines(
    'access-log',
    /\{"level":"[a-z]+","time":"/,
    ({ found }) =>
      line =>
        requestOfAccessLog(line, found),
  ),
  lines(ownFormat, /^\s*\{.*"at"\s*:\s*"/, () => requestOf),
  { name: 'har', matches: isHar, read: readHar },
  { name: 'gor', matches: begin => /^\s*[123] \S+ \d{10,20}(?: -?\d+)?\r?\n/.test(begin), read: readGor },
  lines('combined', quotedRequest, spreadOver(requestOfCommonLog)),
  lines('nginx', ownRequest, spreadOver(requestOfOwnNginx)),
]

/** @throws InputError for an unknown name */
export const formatNamed = (name: string): Format => {
  const found = formats.find(format => format.name === name)
  if (!found) throw new InputError(`the format must be one of ${formatNames.join(', ')}, got ${quoted(name)}`)
  return found
}

/** @param begin of the file, unpacked @throws InputError for an unknown format */
export const formatOf = (begin: string): Format => {
  const text = begin
    .replace(/^\ufeff/, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(unwrapped)
    .join('\n')
  const found = formats.find(({ matches }) => matches(text))
  if (found?.name !== 'har' && /\r/.test(text) && !text.includes('\n'))
    throw new InputError("the lines end with CR only; convert them first: tr '\\r' '\\n'")
  if (!found)
    throw new InputError(
      `unknown format, the file begins with ${quoted(begin)}; give --format: ${formatNames.join(', ')}`,
    )
  return found
}
