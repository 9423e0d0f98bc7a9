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
  readonly client: string | undefined
  readonly connection: number
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
  const ended = createIsoText()
  const arrived = createIsoText()
  const connectionOf = createConnectionText()

  return request => {
    const { status, encoding, notModified, cell, cache, reason, traceId, keyId, tier } = request
    if (status < 500 && accessShare < 1 && random() >= accessShare) return
    const outcome = `${encoding === undefined ? '' : encodings[encoding]}${notModified === undefined ? '' : `"notModified":${notModified},`}${cell === undefined ? '' : `"cell":"${cell}",`}${cache === undefined ? '' : `"cache":${textOf(cache)},`}${reason === undefined ? '' : `"reason":"${reason}",`}${traceId === undefined ? '' : `"traceId":"${traceId}",`}`
    lines.write(
      `{"level":"info","time":"${ended(clock.now())}","requestId":"${request.requestId}","method":"${request.method}","url":${textOf(bounded(request.url))},"endpoint":"${request.endpoint}","status":${status},"ms":${request.ms},"arrivedAt":"${arrived(request.arrivedAt)}","bytes":${request.bytes},${outcome}${keyId === undefined ? '' : `"keyId":${textOf(keyId)},`}${tier === undefined ? '' : `"tier":${textOf(tier)},`}${connectionOf(request)}${request.connectionRequest},${fixed}"msg":"answered"}\n`,
    )
  }
}

const needsEscape = /[^\x20-\x21\x23-\x5b\x5d-\x7e]/

const encodings = { br: '"encoding":"br",', gzip: '"encoding":"gzip",' }

type Connection = Pick<AnsweredRequest, 'connection' | 'client' | 'httpVersion'>

const keptConnections = 1_024

/** The common part of the lines of a connection, made once, up to the number of the request on it. */
const createConnectionText = (): ((request: Connection) => string) => {
  const kept: { readonly of: Connection; readonly text: string }[] = []
  return ({ connection, client, httpVersion }) => {
    const slot = connection % keptConnections
    const found = kept[slot]
    if (
      found?.of.connection === connection &&
      found.of.client === client &&
      found.of.httpVersion === httpVersion
    )
      return found.text
    const from = client === undefined ? '' : `"client":"${client}",`
    const text = flatText(
      `${from}"httpVersion":"${httpVersion}","connection":${connection},"connectionRequest":`,
    )
    kept[slot] = { of: { connection, client, httpVersion }, text }
    return text
  }
}

/** An instant as text, made once a millisecond. */
const createIsoText = (): ((instant: number) => string) => {
  let last = Number.NaN
  let text = ''
  return instant => {
    if (instant !== last) {
      last = instant
      text = isoOf(instant)
    }
    return text
  }
}

// Only text of others (consumers, the store), and quotation marks, need an escape; a look is cheaper than writing every
// character anew.
const textOf = (text: string): string => (needsEscape.test(text) ? jsonText(text) : `"${text}"`)

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
