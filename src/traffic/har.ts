// Reads HAR: the JSON that browsers and proxies export. Entry by entry, so that a large file takes no more memory than its
// largest entry, and one that is cut off keeps the entries before.

import { InputError } from '../errors.ts'
import { UnpackingError } from './file-bytes.ts'
import type { Observer } from './format.ts'
import { outcomeOf } from './recorded-outcome.ts'
import { acceptsOf, instantOf, keyIn, methodOf, pathOf } from './request-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

// Bodies stand in it.
const longestEntry = 64 * 1024 * 1024

export async function* readHar(
  pieces: AsyncIterable<Buffer>,
  { onFault, onSkipped, nameOf }: Observer,
): AsyncGenerator<TrafficRequest[], void, undefined> {
  const scanner = createScanner()
  try {
    for await (const piece of pieces) {
      const requests: TrafficRequest[] = []
      for (const { text, line } of scanner.entriesIn(piece)) {
        try {
          if (text === undefined) throw new InputError(`an entry is longer than ${longestEntry} bytes`)
          const request = requestOfEntry(JSON.parse(text), nameOf)
          if (request) requests.push(request)
          else onSkipped(1)
        } catch (thrown) {
          if (!(thrown instanceof InputError || thrown instanceof SyntaxError)) throw thrown
          onFault(line, thrown instanceof InputError ? thrown.message : 'an entry is no JSON')
        }
      }
      if (requests.length > 0) yield requests
    }
  } catch (thrown) {
    if (!(thrown instanceof UnpackingError)) throw thrown
    onFault(scanner.line(), `${thrown.message}; the rest of the file could not be read`)
    return
  }
  if (!scanner.isWhole())
    onFault(scanner.line(), 'the file ends within its JSON; the entries before are kept')
}

type Header = { name?: unknown; value?: unknown }
type Entry = {
  startedDateTime?: unknown
  time?: unknown
  request?: { method?: unknown; url?: unknown; headers?: Header[] }
  response?: {
    status?: unknown
    bodySize?: unknown
    content?: { size?: unknown }
    headers?: Header[]
  }
}

/** Undefined for what is no HTTP. @throws InputError */
const requestOfEntry = (
  { startedDateTime, time, request = {}, response = {} }: Entry,
  nameOf: Observer['nameOf'],
): TrafficRequest | undefined => {
  const { url } = request
  if (typeof url === 'string' && /^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(url)) return undefined
  const at = instantOf(startedDateTime, 'startedDateTime')
  const sent = headersOf(request.headers)
  const received = headersOf(response.headers)
  const key = keyIn(sent)
  const accepts = acceptsOf(sent['accept-encoding'])
  const { status, bodySize, content } = response
  const bytes = [bodySize, content?.size].find(size => typeof size === 'number' && size >= 0)
  return {
    at,
    method: methodOf(request.method),
    // What follows # never leaves a browser.
    path: pathOf(typeof url === 'string' ? url.replace(/#.*$/s, '') : url),
    ...(key === undefined ? {} : { key: nameOf(key) }),
    ...(accepts === undefined ? {} : { accepts }),
    ...(sent['if-none-match'] === undefined && sent['if-modified-since'] === undefined
      ? {}
      : { conditional: true }),
    // Without an answer, a browser writes 0.
    ...(typeof status === 'number' && status >= 100 && status <= 599
      ? { status, ...outcomeOf(received['cache-status']) }
      : {}),
    ...(bytes === undefined ? {} : { bytes: bytes as number }),
    ...(typeof time === 'number' && time >= 0 ? { ms: time } : {}),
  }
}

const headersOf = (headers: unknown): Record<string, string> => {
  const found: Record<string, string> = {}
  if (Array.isArray(headers))
    for (const { name, value } of headers as Header[])
      if (typeof name === 'string' && typeof value === 'string') found[name.toLowerCase()] = value
  return found
}

type FoundEntry = { text: string | undefined; line: number }

const [quote, backslash, open, close, openList, closeList, newLine] = [...Buffer.from('"\\{}[]\n')]
// Of the document, of `log`, and of the list of entries.
const [inLog, inEntries] = [2, 3]

/** Finds the objects in the list `log.entries`, across pieces. */
const createScanner = () => {
  let depth = 0
  let line = 1
  let isInString = false
  let isEscaped = false
  let word = ''
  let isEntries = false
  // Of the entry that is read: what of it came in former pieces, and the line where it begins.
  let parts: Buffer[] | undefined
  let length = 0
  let begunAt = 0
  let hasBegun = false

  const entriesIn = (piece: Buffer): FoundEntry[] => {
    const found: FoundEntry[] = []
    let from = 0
    for (let at = 0; at < piece.length; at++) {
      const sign = piece[at] as number
      if (isInString) {
        if (isEscaped) isEscaped = false
        else if (sign === backslash) isEscaped = true
        else if (sign === quote) isInString = false
        else if (depth === inLog && word.length < 10) word += String.fromCharCode(sign)
        continue
      }
      if (sign === quote) {
        isInString = true
        if (depth === inLog) word = ''
      } else if (sign === open || sign === openList) {
        if (depth === inLog) isEntries = sign === openList && word === 'entries'
        if (depth === inEntries && isEntries && sign === open) {
          parts = []
          length = 0
          from = at
          begunAt = line
        }
        depth += 1
        hasBegun = true
      } else if (sign === close || sign === closeList) {
        depth -= 1
        if (depth === inEntries && parts !== undefined) {
          const text =
            length + at - from > longestEntry ? undefined : [...parts, piece.subarray(from, at + 1)]
          found.push({ text: text && Buffer.concat(text).toString(), line: begunAt })
          parts = undefined
        }
      } else if (sign === newLine) line += 1
    }
    if (parts !== undefined) {
      length += piece.length - from
      if (length > longestEntry) parts = []
      else parts.push(piece.subarray(from))
    }
    return found
  }
  return { entriesIn, line: () => line, isWhole: () => hasBegun && depth === 0 }
}
