// Parses the head of a response: status, framing, cache result and age of the weather. One pass without objects for other headers,
// because it runs for each response. Ambiguous framing is refused, as in Node's parser.

import { parseHttpDate } from 'abohawa/common/calendar.ts'
import type { Outcome } from '../traffic/traffic-request.ts'

export type CacheFacts = {
  readonly etag: string | undefined
  readonly encoding: string | undefined
  readonly outcome: Outcome
  readonly ageSeconds: number | undefined
}

export type ResponseHead = {
  -readonly [Fact in keyof CacheFacts]: CacheFacts[Fact]
} & {
  readonly status: number
  /** -1: not given. */
  length: number
  chunked: boolean
  closes: boolean
}

const statusLine = /^HTTP\/1\.[01] [1-9]\d\d[ \r]/
const lengthValue = /^[\t ]*(\d{1,15})[\t ]*$/
const chunkedValue = /^[\t ]*chunked[\t ]*$/i
// By the length of its name: whether a header may be one that is read.
const isReadLength = Array.from({ length: 18 }, (_, length) => [4, 10, 12, 13, 14, 16, 17].includes(length))

/** @param text the head with its line breaks, in Latin-1 @returns undefined for an invalid head, and for ambiguous framing */
export const headOf = (text: string): ResponseHead | undefined => {
  if (!statusLine.test(text) || text.includes('\0')) return undefined
  const isHttp10 = text.charCodeAt(7) === 48
  const head: ResponseHead = {
    // HTTP/1.1 200
    status: Number(text.slice(9, 12)),
    length: -1,
    chunked: false,
    closes: isHttp10,
    etag: undefined,
    encoding: undefined,
    outcome: 'none',
    ageSeconds: undefined,
  }
  let cacheStatus = ''
  let date: string | undefined
  let modified: string | undefined
  let from = text.indexOf('\r') + 2
  if (text.indexOf('\n') !== from - 1) return undefined
  for (;;) {
    // Other parsers differ on single line breaks, folded lines and blanks at a colon.
    const end = text.indexOf('\r', from)
    if (text.indexOf('\n', from) !== end + 1) return undefined
    if (end === from) break
    const colon = text.indexOf(':', from)
    if (colon <= from || colon > end || isBlank(text, from) || isBlank(text, colon - 1)) return undefined
    const value = isReadLength[colon - from] ? text.slice(colon + 1, end) : ''
    switch (isReadLength[colon - from] ? text.slice(from, colon).toLowerCase() : '') {
      case 'date':
        date = value.trim()
        break
      case 'etag':
        head.etag = value.trim()
        break
      case 'connection':
        if (/^[\t ]*keep-alive[\t ]*$/i.test(value)) head.closes = false
        else if (/(?:^|,)[\t ]*close[\t ]*(?:,|$)/i.test(value)) head.closes = true
        break
      case 'cache-status':
        // A proxy may add a line of its own.
        cacheStatus = cacheStatus === '' ? value : `${cacheStatus},${value}`
        break
      case 'last-modified':
        modified = value.trim()
        break
      case 'content-length': {
        const [, length] = lengthValue.exec(value) ?? []
        if (length === undefined || head.length >= 0) return undefined
        head.length = Number(length)
        break
      }
      case 'content-encoding':
        head.encoding = value.trim()
        break
      case 'transfer-encoding':
        if (head.chunked || !chunkedValue.test(value)) return undefined
        head.chunked = true
    }
    from = end + 2
  }
  if (head.chunked && (head.length >= 0 || isHttp10)) return undefined
  if (cacheStatus !== '') head.outcome = cacheOutcomeOf(cacheStatus)
  head.ageSeconds = ageOf(date, modified)
  return head
}

export const cacheFactsIn = (
  headers: Readonly<Record<string, string | string[] | undefined>>,
): CacheFacts => {
  const [etag, encoding, status, date, modified] = [
    'etag',
    'content-encoding',
    'cache-status',
    'date',
    'last-modified',
  ].map(name => headers[name]?.toString())
  return { etag, encoding, outcome: cacheOutcomeOf(status ?? ''), ageSeconds: ageOf(date, modified) }
}

const isBlank = (text: string, at: number): boolean => text.charCodeAt(at) <= 32

/**
 * The cache result in `cache-status` (RFC 9211): the gateway's, else the last cache's. A hit with a negative ttl is stale.
 */
export const cacheOutcomeOf = (value: string): Outcome => {
  const members = value.includes(',') ? value.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/) : [value]
  const member = members.find(each => /^\s*abohawa\s*(;|$)/.test(each)) ?? members.at(-1) ?? ''
  if (/;\s*fwd=stale\b/.test(member)) return 'stale'
  if (/;\s*fwd\b/.test(member)) return 'miss'
  if (!/;\s*hit\b/.test(member)) return 'none'
  return /;\s*ttl=-/.test(member) ? 'stale' : 'hit'
}

const ageOf = (date: string | undefined, modified: string | undefined): number | undefined => {
  if (date === undefined || modified === undefined) return undefined
  const ms = instantOf(date) - instantOf(modified)
  return ms >= 0 ? ms / 1000 : undefined
}

// Dates repeat: `date` within a second, `last-modified` within a cell.
const instants = new Map<string, number>()
const maxInstants = 5_000

const instantOf = (text: string): number => {
  const found = instants.get(text)
  if (found !== undefined) return found
  if (instants.size >= maxInstants) instants.clear()
  const instant = parseHttpDate(text)
  instants.set(text, instant)
  return instant
}
