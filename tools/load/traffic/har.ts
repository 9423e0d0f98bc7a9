// Reads HAR, the JSON that browsers and proxies export, as one document of bounded length. Keeps only requests that one host received.

import { InputError } from 'abohawa/common/errors.ts'
import { endpointOf } from './endpoint-of-path.ts'
import { type LeftOut, type Reading, withoutUsualPort } from './format.ts'
import { durationOf, instantOf, known, methodOf, pathOf, recordedOutcome, sentIn } from './request-line.ts'
import { givenText, heldAs, type TrafficRequest } from './traffic-request.ts'

// Includes bodies, and takes several times as much when parsed.
const longestMiB = 64
// Faults name the number of an entry instead of its line.
const line = 1

export async function* readHar(
  chunks: AsyncIterable<Buffer>,
  reading: Reading,
): AsyncGenerator<TrafficRequest[], void, undefined> {
  let entries: readonly unknown[] = []
  try {
    entries = entriesIn(await documentOf(chunks, reading))
  } catch (thrown) {
    reading.onFault(line, thrown)
  }
  const found: OfHost[] = []
  for (const [i, entry] of entries.entries()) {
    try {
      const request = requestOfEntry(partOf(entry, 'it'), reading.nameOf)
      if (request === undefined) reading.found.skippedLines += 1
      else if (typeof request === 'string') reading.found.leftOut[request] += 1
      else found.push(request)
    } catch (thrown) {
      reading.onFault(line, thrown, `entry ${i + 1}: `)
    }
  }
  const requests = requestsOfHost(found, reading)
  for (let at = 0; at < requests.length; at += batchSize) yield requests.slice(at, at + batchSize)
}

const batchSize = 1_000

/** @throws InputError */
const documentOf = async (chunks: AsyncIterable<Buffer>, reading: Reading): Promise<unknown> => {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > longestMiB * 1024 * 1024)
      throw new InputError(
        `the HAR is longer than ${longestMiB} MiB; export fewer requests, or without response bodies`,
      )
    parts.push(chunk)
  }
  if (reading.failure !== undefined) throw new InputError(`${reading.failure}; the file can't be read`)
  try {
    return JSON.parse(
      Buffer.concat(parts)
        .toString()
        .replace(/^\ufeff/, ''),
    )
  } catch (cause) {
    // The message of JSON.parse quotes the text, which may contain a key.
    throw new InputError('the HAR is not valid JSON, expected a file as a browser exports it', { cause })
  }
}

/** @throws InputError */
const entriesIn = (document: unknown): readonly unknown[] => {
  const { entries } = fieldsIn(fieldsIn(document).log)
  if (Array.isArray(entries)) return entries
  throw new InputError('log has no list of entries, expected entries such as a browser exports')
}

/** `host` is empty where the URL has none. */
type OfHost = { readonly request: TrafficRequest; readonly host: string }

/** The requests of one host: of `--host`, else of the first request to this API, else of the first request. */
const requestsOfHost = (all: readonly OfHost[], { host: wanted, found }: Reading): TrafficRequest[] => {
  const first = all.find(({ request }) => endpointOf(request.path) !== 'other') ?? all[0]
  const host = wanted ?? first?.host
  const own = all.filter(each => each.host === host)
  found.leftOut.otherHosts += all.length - own.length
  if (own.length > 0 && host) found.host = host
  return own.map(({ request }) => request)
}

type Fields = Readonly<Record<string, unknown>>

/** An object, empty where it is missing. @throws InputError */
const partOf = (value: unknown, name: string, expected = 'an object'): Fields => {
  if (value === undefined) return {}
  if (value instanceof Object && !Array.isArray(value)) return value as Fields
  throw new InputError(`${name} is ${givenText(value)}, expected ${expected}`)
}

/** Undefined for other protocols than HTTP. @throws InputError */
const requestOfEntry = (entry: Fields, nameOf: Reading['nameOf']): OfHost | LeftOut | undefined => {
  const [sent, received] = [partOf(entry.request, 'request'), partOf(entry.response, 'response')]
  const { url } = sent
  if (typeof url === 'string' && /^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(url)) return undefined
  if (isCached(entry)) return 'cached'
  if (received.status === 0) return 'blocked'
  const headers = headersOf(sent.headers, 'request.headers')
  const answered = headersOf(received.headers, 'response.headers')
  const status = heldAs('status', received.status)
  const content = partOf(received.content ?? undefined, 'response.content')
  const request = known({
    at: instantOf(entry.startedDateTime, 'startedDateTime'),
    method: methodOf(sent.method),
    // A browser never sends the fragment.
    path: pathOf(typeof url === 'string' ? url.replace(/#.*$/s, '') : url),
    ...sentIn(headers, nameOf),
    status,
    ...(status === undefined ? {} : recordedOutcome(answered['cache-status'])),
    bytes: heldAs('bytes', received.bodySize) ?? heldAs('bytes', content.size),
    ms: durationOf(entry.time),
  })
  return { request, host: withoutUsualPort(URL.parse(String(url))?.host ?? '') }
}

/** Whether the response came from the browser's cache, as Chrome and Edge, Safari, or Firefox write it. */
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
