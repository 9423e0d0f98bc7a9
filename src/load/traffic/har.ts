// Reads HAR: the JSON that browsers and proxies export. Entry by entry, so that a large file takes no more memory than its
// largest entry, and one that is cut off keeps the entries before. A page has requests to many hosts, and some that never left
// the browser: of these, only those that one host received are traffic.

import { InputError } from '../../errors.ts'
import { endpointOf } from './endpoint-of-path.ts'
import { UnpackingError } from './file-bytes.ts'
import { type LeftOut, type Observer, withoutUsualPort } from './format.ts'
import { outcomeOf } from './recorded-outcome.ts'
import {
  acceptsOf,
  amountOf,
  durationOf,
  givenText,
  instantOf,
  isStatus,
  keyIn,
  methodOf,
  pathOf,
} from './request-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

// Bodies stand in it.
const longestEntry = 16 * 1024 * 1024

export async function* readHar(
  chunks: AsyncIterable<Buffer>,
  { onFault, onSkipped, nameOf, ...observer }: Observer,
): AsyncGenerator<TrafficRequest[], void, undefined> {
  const scanner = createScanner()
  const ofHost = createHostFilter(observer)
  try {
    for await (const chunk of chunks) {
      const found: Found[] = []
      for (const { text, number, line } of scanner.entriesIn(chunk)) {
        try {
          if (text === undefined) throw new InputError(`it is longer than ${longestEntry} bytes`)
          const request = requestOfEntry(partOf(JSON.parse(text), 'it'), nameOf)
          if (request === undefined) onSkipped(1)
          else if (typeof request === 'string') observer.onLeftOut(request, 1)
          else found.push(request)
        } catch (thrown) {
          if (!(thrown instanceof InputError || thrown instanceof SyntaxError)) throw thrown
          onFault(line, `entry ${number}: ${thrown instanceof InputError ? thrown.message : 'it is no JSON'}`)
        }
      }
      yield ofHost(found)
    }
  } catch (thrown) {
    if (!(thrown instanceof UnpackingError)) throw thrown
    onFault(scanner.line(), `${thrown.message}; the rest of the file could not be read`)
    yield ofHost([], true)
    return
  }
  yield ofHost([], true)
  if (!scanner.isWhole())
    onFault(scanner.line(), 'the file ends within its JSON; the entries before are kept')
  else if (!scanner.hasEntries())
    onFault(scanner.line(), 'log has no list of entries, expected entries such as a browser exports')
}

/** `host` is empty where the URL has none. */
type Found = { readonly request: TrafficRequest; readonly host: string }

// So many wait for a request to this API.
const maxHeld = 10_000

/** Takes requests, and gives those of one host: the given one, else that of the first request to this API, else the first. */
const createHostFilter = ({
  host: given,
  onHost,
  onLeftOut,
}: Pick<Observer, 'host' | 'onHost' | 'onLeftOut'>) => {
  let host = given
  let held: Found[] = []
  return (found: readonly Found[], isEnd = false): TrafficRequest[] => {
    held.push(...found)
    if (host === undefined) {
      const first = found.find(({ request }) => endpointOf(request.path) !== 'other')
      host = first?.host ?? (isEnd || held.length >= maxHeld ? held[0]?.host : undefined)
    }
    if (host === undefined) return []
    const own = held.filter(each => each.host === host)
    if (own.length < held.length) onLeftOut('otherHosts', held.length - own.length)
    if (own.length > 0 && host !== '') onHost(host)
    held = []
    return own.map(({ request }) => request)
  }
}

type Fields = Readonly<Record<string, unknown>>

/** The object of that name, empty where it is missing. @throws InputError */
const partOf = (value: unknown, name: string, expected = 'an object'): Fields => {
  if (value === undefined) return {}
  if (value instanceof Object && !Array.isArray(value)) return value as Fields
  throw new InputError(`${name} is ${givenText(value)}, expected ${expected}`)
}

/** Undefined for what is no HTTP. @throws InputError */
const requestOfEntry = (entry: Fields, nameOf: Observer['nameOf']): Found | LeftOut | undefined => {
  const { startedDateTime, time, request, response } = entry
  const [sent, received] = [partOf(request, 'request'), partOf(response, 'response')]
  const { url } = sent
  if (typeof url === 'string' && /^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(url)) return undefined
  if (isCached(entry)) return 'cached'
  if (received.status === 0) return 'blocked'
  const headers = headersOf(sent.headers, 'request.headers')
  const answered = headersOf(received.headers, 'response.headers')
  const key = keyIn(headers)
  const accepts = acceptsOf(headers['accept-encoding'])
  const { status, bodySize, content } = received
  const bytes = amountOf(bodySize) ?? amountOf(partOf(content ?? undefined, 'response.content').size)
  const ms = durationOf(time)
  const read: TrafficRequest = {
    at: instantOf(startedDateTime, 'startedDateTime'),
    method: methodOf(sent.method),
    // A browser never sends the fragment.
    path: pathOf(typeof url === 'string' ? url.replace(/#.*$/s, '') : url),
    ...(key === undefined ? {} : { key: nameOf(key) }),
    ...(accepts === undefined ? {} : { accepts }),
    ...(headers['if-none-match'] === undefined && headers['if-modified-since'] === undefined
      ? {}
      : { conditional: true }),
    ...(isStatus(status) ? { status, ...outcomeOf(answered['cache-status']) } : {}),
    ...(bytes === undefined ? {} : { bytes }),
    ...(ms === undefined ? {} : { ms }),
  }
  return { request: read, host: withoutUsualPort(URL.parse(String(url))?.host ?? '') }
}

/** Whether the browser had the response itself, as Chrome and Edge, Safari, or Firefox write it. */
const isCached = ({ _fromCache, _fetchType, cache, response }: Fields): boolean => {
  const { beforeRequest, afterRequest } = fieldsIn(cache)
  return (
    (typeof _fromCache === 'string' && _fromCache !== '') ||
    _fromCache === true ||
    fieldsIn(response)._fetchedViaServiceWorker === true ||
    _fetchType === 'Memory Cache' ||
    _fetchType === 'Disk Cache' ||
    _fetchType === 'Service Worker' ||
    (afterRequest === null && beforeRequest === undefined)
  )
}

const fieldsIn = (value: unknown): Fields => (value instanceof Object ? (value as Fields) : {})

const headersOf = (headers: unknown, name: string): Record<string, string> => {
  const found: Record<string, string> = {}
  if (headers === undefined) return found
  if (!Array.isArray(headers)) throw new InputError(`${name} is ${givenText(headers)}, expected a list`)
  for (const [i, header] of headers.entries()) {
    const { name: title, value } = partOf(header, `${name}[${i}]`, 'an object with name and value')
    if (typeof title === 'string' && typeof value === 'string') found[title.toLowerCase()] = value
  }
  return found
}

type FoundEntry = { text: string | undefined; number: number; line: number }

const [quote, backslash, open, close, openList, closeList, newLine, comma, blank] = [
  ...Buffer.from('"\\{}[]\n, '),
] as [number, number, number, number, number, number, number, number, number]
// Of the document, of `log`, and of the list of entries.
const [inLog, inEntries] = [2, 3]

/** Finds what stands in the list `log.entries`, across chunks. */
const createScanner = () => {
  let depth = 0
  let line = 1
  let isInString = false
  let isEscaped = false
  let word = ''
  let isEntries = false
  let hasEntries = false
  let number = 0
  // Of the entry that is read: what of it came in former chunks, and the line where it begins.
  let parts: Buffer[] | undefined
  let length = 0
  let begunAt = 0
  let hasBegun = false

  const entriesIn = (chunk: Buffer): FoundEntry[] => {
    const found: FoundEntry[] = []
    let from = 0
    const begin = (at: number): void => {
      parts = []
      length = 0
      from = at
      number += 1
      begunAt = line
    }
    const end = (at: number): void => {
      if (parts === undefined) return
      const isLong = length + at - from > longestEntry
      const text = isLong ? undefined : Buffer.concat([...parts, chunk.subarray(from, at)]).toString()
      found.push({ text, number, line: begunAt })
      parts = undefined
    }
    for (let at = 0; at < chunk.length; at++) {
      const sign = chunk[at] as number
      if (isInString) {
        if (isEscaped) isEscaped = false
        else if (sign === backslash) isEscaped = true
        else if (sign === quote) isInString = false
        else if (depth === inLog && word.length < 10) word += String.fromCharCode(sign)
        continue
      }
      if (sign <= blank) {
        if (sign === newLine) line += 1
        continue
      }
      const isBetween = isEntries && depth === inEntries
      if (isBetween && parts === undefined && sign !== comma && sign !== closeList) begin(at)
      if (sign === quote) {
        isInString = true
        if (depth === inLog) word = ''
      } else if (sign === open || sign === openList) {
        if (depth === inLog) {
          isEntries = sign === openList && word === 'entries'
          hasEntries ||= isEntries
        }
        depth += 1
        hasBegun = true
      } else if (sign === close || sign === closeList) {
        if (isBetween) end(at)
        depth -= 1
        if (isEntries && depth === inEntries) end(at + 1)
      } else if (isBetween && sign === comma) end(at)
    }
    if (parts !== undefined) {
      length += chunk.length - from
      if (length > longestEntry) parts = []
      else parts.push(chunk.subarray(from))
    }
    return found
  }
  return {
    entriesIn,
    line: () => line,
    isWhole: () => hasBegun && depth === 0,
    hasEntries: () => hasEntries,
  }
}
