// Reads HAR: the JSON that browsers and proxies export, as one document of bounded length. A page has requests to many hosts,
// and some that never left the browser: of these, only those that one host received are traffic.

import { InputError } from '../../common/errors.ts'
import { endpointOf } from './endpoint-of-path.ts'
import { UnpackingError } from './file-bytes.ts'
import { type LeftOut, type Observer, withoutUsualPort } from './format.ts'
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
  recordedOutcome,
} from './request-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

// Bodies stand in it, and parsed it takes several times as much.
const longestMiB = 64
// Of faults: an entry has a number, and no line that is known.
const line = 1

export async function* readHar(
  chunks: AsyncIterable<Buffer>,
  { onFault, onSkipped, nameOf, ...observer }: Observer,
): AsyncGenerator<TrafficRequest[], void, undefined> {
  let entries: readonly unknown[] = []
  try {
    entries = entriesIn(await documentOf(chunks))
  } catch (thrown) {
    if (!(thrown instanceof InputError)) throw thrown
    onFault(line, thrown.message)
  }
  const found: Found[] = []
  for (const [i, entry] of entries.entries()) {
    try {
      const request = requestOfEntry(partOf(entry, 'it'), nameOf)
      if (request === undefined) onSkipped(1)
      else if (typeof request === 'string') observer.onLeftOut(request, 1)
      else found.push(request)
    } catch (thrown) {
      if (!(thrown instanceof InputError)) throw thrown
      onFault(line, `entry ${i + 1}: ${thrown.message}`)
    }
  }
  const ofHost = requestsOfHost(found, observer)
  for (let at = 0; at < ofHost.length; at += batchSize) yield ofHost.slice(at, at + batchSize)
}

const batchSize = 1_000

/** @throws InputError */
const documentOf = async (chunks: AsyncIterable<Buffer>): Promise<unknown> => {
  const parts: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of chunks) {
      length += chunk.length
      if (length > longestMiB * 1024 * 1024)
        throw new InputError(
          `the HAR is longer than ${longestMiB} MiB; export fewer requests, or without response bodies`,
        )
      parts.push(chunk)
    }
    return JSON.parse(
      Buffer.concat(parts)
        .toString()
        .replace(/^\ufeff/, ''),
    )
  } catch (thrown) {
    if (thrown instanceof UnpackingError)
      throw new InputError(`${thrown.message}; the file could not be read`, { cause: thrown })
    if (thrown instanceof SyntaxError)
      // Its own message shows a part of the text, which may hold a key.
      throw new InputError('the HAR is no whole JSON, expected the file as a browser exports it')
    throw thrown
  }
}

/** @throws InputError */
const entriesIn = (document: unknown): readonly unknown[] => {
  const { entries } = fieldsIn(fieldsIn(document).log)
  if (Array.isArray(entries)) return entries
  throw new InputError('log has no list of entries, expected entries such as a browser exports')
}

/** `host` is empty where the URL has none. */
type Found = { readonly request: TrafficRequest; readonly host: string }

/** Those of one host: the wanted one, else that of the first request to this API, else that of the first. */
const requestsOfHost = (
  found: readonly Found[],
  { host: wanted, onHost, onLeftOut }: Pick<Observer, 'host' | 'onHost' | 'onLeftOut'>,
): TrafficRequest[] => {
  const first = found.find(({ request }) => endpointOf(request.path) !== 'other') ?? found[0]
  const host = wanted ?? first?.host
  const own = found.filter(each => each.host === host)
  if (own.length < found.length) onLeftOut('otherHosts', found.length - own.length)
  if (own.length > 0 && host) onHost(host)
  return own.map(({ request }) => request)
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
    ...(isStatus(status) ? { status, ...recordedOutcome(answered['cache-status']) } : {}),
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
