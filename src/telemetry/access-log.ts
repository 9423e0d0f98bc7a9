// A line for each answered request, put together by hand: a general logger spends on it as much as the answer costs.
// log.ts writes it.

import { isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { ResponseName } from '../common/endpoints.ts'
import { bounded, jsonText } from '../common/outside-text.ts'
import type { Lines } from './log.ts'

export type AnsweredRequest = {
  readonly requestId: string
  readonly method: string
  readonly url: string
  readonly endpoint: ResponseName
  readonly status: number
  readonly ms: number
  readonly keyId: string | undefined
  /** The cache result; undefined for answers without weather. */
  readonly cache: string | undefined
  readonly cell: string | undefined
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

export type AccessLogOptions = {
  /** The share of answers below 500 that get a line, from 0 to 1; each line has a share below 1. */
  readonly accessShare: number
}

export const createAccessLog = (
  { accessShare }: AccessLogOptions,
  lines: Lines,
  clock: Clock,
  random = Math.random,
): ((request: AnsweredRequest) => void) => {
  const share = accessShare < 1 ? `"share":${accessShare},` : ''
  const fixed = lines.process === undefined ? share : `${share}"process":${lines.process},`
  const end = flatText(`,${fixed}"msg":"answered"}\n`)
  const endedAt = createInstantText('{"level":"info","time":"', '","requestId":"')
  const arrivedAt = createInstantText(',"arrivedAt":"', '","bytes":')
  const connectionOf = createConnectionText()

  // Each part that is joined costs memory, so what many lines have in common is joined before.
  return request => {
    const { status, encoding, notModified, cell, cache, reason, traceId, keyId, tier } = request
    if (status < 500 && accessShare < 1 && random() >= accessShare) return
    let outcome = encoding === undefined ? ',' : encodings[encoding]
    if (notModified !== undefined) outcome += notModified ? '"notModified":true,' : '"notModified":false,'
    if (cell !== undefined) outcome += `"cell":"${cell}",`
    if (cache !== undefined) outcome += `"cache":${textOf(cache)},`
    if (reason !== undefined) outcome += `"reason":"${reason}",`
    if (traceId !== undefined) outcome += `"traceId":"${traceId}",`
    if (keyId !== undefined) outcome += `"keyId":${textOf(keyId)},`
    if (tier !== undefined) outcome += `"tier":${textOf(tier)},`
    lines.write(
      `${endedAt(clock.now())}${request.requestId}","method":"${request.method}","url":${textOf(bounded(request.url))},"endpoint":"${request.endpoint}","status":${status},"ms":${request.ms}${arrivedAt(request.arrivedAt)}${request.bytes}${outcome}${connectionOf(request)}${request.connectionRequest}${end}`,
    )
  }
}

const needsEscape = /[^\x20-\x21\x23-\x5b\x5d-\x7e]/
const beyondAscii = /[^\x20-\x7e]/g

const encodings = { br: ',"encoding":"br",', gzip: ',"encoding":"gzip",' }

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
const createInstantText = (before: string, after: string): ((instant: number) => string) => {
  let last = Number.NaN
  let text = ''
  return instant => {
    if (instant !== last) {
      last = instant
      text = flatText(before + isoOf(instant) + after)
    }
    return text
  }
}

// Only text of others (consumers, the store), and quotation marks, need an escape; a look is cheaper than writing every
// character anew.
const textOf = (text: string): string =>
  needsEscape.test(text)
    ? jsonText(text).replace(beyondAscii, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : `"${text}"`

/**
 * The same text, as one string, where it is used again and again: the engine keeps concatenated text as a tree of parts, and walks
 * through it each time that it is copied.
 */
export const flatText = (text: string): string => {
  // Reading the characters joins the parts in place.
  anything.test(text)
  return text
}
const anything = /^/
