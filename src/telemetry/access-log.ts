// A log line for each answered request, written part by part: with a general logger it costs as much as the response.

import { isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { ResponseName } from '../common/endpoints.ts'
import { flatText, putText } from '../common/flat-text.ts'
import { bounded, jsonText } from '../common/outside-text.ts'
import type { LineParts } from './log.ts'

export type AnsweredRequest = {
  readonly requestId: string
  readonly method: string
  readonly url: string
  readonly endpoint: ResponseName
  readonly status: number
  /** Rounded to thousandths. */
  readonly ms: number
  readonly keyId: string | undefined
  /** The cache result; undefined for answers without weather. */
  readonly cache: string | undefined
  readonly cell: string | undefined
  /** The units that it took; undefined for one. */
  readonly cost: number | undefined
  readonly tier: string | undefined
  /** Why a key was refused, or the code of the failure behind a 500. */
  readonly reason: string | undefined
  /** Ms since the epoch. */
  readonly arrivedAt: number
  /** An address or a network, in the form that the log may hold. */
  readonly address: string | undefined
  readonly connection: { readonly number: number }
  readonly connectionRequest: number
  readonly httpVersion: string
  readonly bytes: number
  readonly encoding: 'br' | 'gzip' | undefined
  readonly notModified: boolean | undefined
  readonly traceId: string | undefined
}

/** @param accessShare of answers below 500 that get a line, from 0 to 1; each line has a share below 1 */
export const createAccessLog = (
  accessShare: number,
  lines: LineParts,
  clock: Clock,
  random = Math.random,
): ((request: AnsweredRequest) => void) => {
  const share = accessShare < 1 ? `"share":${accessShare},` : ''
  const fixed = lines.process === undefined ? share : `${share}"process":${lines.process},`
  const end = bytesOf(`,${fixed}"msg":"answered"}\n`)
  const endedAt = createInstantText('{"level":"info","time":"', '","requestId":"')
  const arrivedAt = createInstantText(',"arrivedAt":"', '","bytes":')
  const methodOf = createKept((method: string) => `","method":"${method}","url":"`)
  const tierOf = createKept((tier: string) => `"tier":"${insideOf(tier)}",`)
  const answerOf = createAnswerText()
  const connectionOf = createConnectionText()
  const write = (part: string): void => lines.write(part)
  const copy = (part: Uint8Array): void => lines.copy(part)
  const writeField = (before: Uint8Array, value: string | undefined): void => {
    if (value === undefined) return
    copy(before)
    write(value)
    write('",')
  }

  // Nothing is joined, and what many lines have in common is made once.
  return request => {
    const { status, encoding, notModified, cache, keyId, tier } = request
    if (status < 500 && accessShare < 1 && random() >= accessShare) return
    copy(endedAt(clock.now()))
    write(request.requestId)
    copy(methodOf(request.method))
    write(insideOf(bounded(request.url)))
    copy(answerOf(request))
    const whole = Math.floor(request.ms)
    write(String(whole))
    write(thousandths[Math.round((request.ms - whole) * 1000)] ?? '')
    copy(arrivedAt(request.arrivedAt))
    write(String(request.bytes))
    if (encoding === undefined) write(',')
    else copy(encodings[encoding])
    if (notModified !== undefined) copy(notModified ? isNotModified : isModified)
    writeField(before.cell, request.cell)
    writeField(before.cache, cache && insideOf(cache))
    if (request.cost !== undefined && request.cost !== 1) write(`"cost":${request.cost},`)
    writeField(before.reason, request.reason)
    writeField(before.traceId, request.traceId)
    writeField(before.keyId, keyId && insideOf(keyId))
    if (tier !== undefined) copy(tierOf(tier))
    write(connectionOf(request))
    write(String(request.connectionRequest))
    lines.end(end)
  }
}

const needsEscape = /[^\x20-\x21\x23-\x5b\x5d-\x7e]/
const beyondAscii = /[^\x20-\x7e]/g

const bytesOf = (text: string): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(text.length)
  putText(bytes, 0, text)
  return bytes
}

const encodings = { br: bytesOf(',"encoding":"br",'), gzip: bytesOf(',"encoding":"gzip",') }
const isNotModified = bytesOf('"notModified":true,')
const isModified = bytesOf('"notModified":false,')
const before = {
  cell: bytesOf('"cell":"'),
  cache: bytesOf('"cache":"'),
  reason: bytesOf('"reason":"'),
  traceId: bytesOf('"traceId":"'),
  keyId: bytesOf('"keyId":"'),
}

// Of the ms that an answer took, whose text would else be made digit by digit.
const thousandths = Array.from({ length: 1_000 }, (_, i) => String(i / 1_000).slice(1))

const mostKept = 100
const longestKept = 100

/** What is made of a text, once for each of the few: methods and tiers. A client of HTTP/2 may send any word as its method. */
const createKept = (make: (of: string) => string): ((of: string) => Uint8Array) => {
  const kept = new Map<string, Uint8Array>()
  return of => {
    let part = kept.get(of)
    if (!part) {
      part = bytesOf(make(of))
      if (kept.size < mostKept && of.length < longestKept) kept.set(of, part)
    }
    return part
  }
}

/** The part of a line between the URL and the time that an answer took. */
const createAnswerText = (): ((request: Pick<AnsweredRequest, 'endpoint' | 'status'>) => Uint8Array) => {
  const ofEndpoint = new Map<ResponseName, Uint8Array[]>()
  return ({ endpoint, status }) => {
    let ofStatus = ofEndpoint.get(endpoint)
    if (!ofStatus) {
      ofStatus = []
      ofEndpoint.set(endpoint, ofStatus)
    }
    ofStatus[status] ??= bytesOf(`","endpoint":"${endpoint}","status":${status},"ms":`)
    return ofStatus[status]
  }
}

type Connected = Pick<AnsweredRequest, 'connection' | 'address' | 'httpVersion'>

const keptConnections = 1_024

/** The common part of the lines of a connection, made once, up to the number of the request on it. */
const createConnectionText = (): ((request: Connected) => string) => {
  type Kept = { readonly of: number; readonly address: string | undefined; readonly httpVersion: string }
  const kept: (Kept & { readonly text: string })[] = []
  return ({ connection: { number }, address, httpVersion }) => {
    const slot = number % keptConnections
    const found = kept[slot]
    if (found?.of === number && found.address === address && found.httpVersion === httpVersion)
      return found.text
    const from = address === undefined ? '' : `"client":"${address}",`
    const text = flatText(`${from}"httpVersion":"${httpVersion}","connection":${number},"connectionRequest":`)
    kept[slot] = { of: number, address, httpVersion, text }
    return text
  }
}

/** An instant as text between two others, made once a millisecond. */
const createInstantText = (before: string, after: string): ((instant: number) => Uint8Array) => {
  let last = Number.NaN
  let part = bytesOf('')
  return instant => {
    if (instant !== last) {
      last = instant
      const text = before + isoOf(instant) + after
      if (text.length === part.length) putText(part, 0, text)
      else part = bytesOf(text)
    }
    return part
  }
}

// Only text of others (consumers, the store), and quotation marks, need an escape; a look is cheaper than writing every
// character anew.
const insideOf = (text: string): string =>
  needsEscape.test(text)
    ? jsonText(text)
        .slice(1, -1)
        .replace(beyondAscii, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : text
