// Reads the head of an answer for a replay: status, framing of the body, cache result and age of the weather. One pass over the
// lines without objects for other headers, because it runs for each answer. Ambiguous framing is refused, as in Node's parser:
// misread, the rest of an answer would count as the answer to another request.

import { parseHttpDate } from '../../common/calendar.ts'
import type { Outcome } from '../traffic/traffic-request.ts'

export type ResponseHead = {
  status: number
  /** -1: not given. */
  length: number
  chunked: boolean
  /** Whether the server closes the connection after it. */
  closes: boolean
  etag: string | undefined
  encoding: string | undefined
  outcome: Outcome
  ageSeconds: number | undefined
}

const statusLine = /^HTTP\/1\.[01] [1-9]\d\d[ \r]/
const lengthValue = /^[\t ]*(\d{1,15})[\t ]*$/
const chunkedValue = /^[\t ]*chunked[\t ]*$/i

/** @param text the head with its line breaks, in Latin-1. @returns undefined for what is no head of HTTP/1.1, and for a body without a clear end */
export const headOf = (text: string): ResponseHead | undefined => {
  if (!statusLine.test(text) || text.includes('\0')) return undefined
  // HTTP/1.1 200
  const status = Number(text.slice(9, 12))
  const head = emptyHead(status)
  const isHttp10 = text.charCodeAt(7) === 48
  head.closes = isHttp10
  let date: string | undefined
  let modified: string | undefined
  let from = text.indexOf('\r') + 2
  if (text.indexOf('\n') !== from - 1) return undefined
  for (;;) {
    // To other readers a line break by itself ends a line too, a blank continues the line before, and one at a colon is none.
    const end = text.indexOf('\r', from)
    if (text.indexOf('\n', from) !== end + 1) return undefined
    if (end === from) break
    const colon = text.indexOf(':', from)
    if (colon <= from || colon > end || isBlank(text, from) || isBlank(text, colon - 1)) return undefined
    switch (colon - from) {
      case 4: {
        const name = nameIn(text, from, colon)
        if (name === 'date') date = valueIn(text, colon, end)
        else if (name === 'etag') head.etag = valueIn(text, colon, end)
        break
      }
      case 10:
        if (nameIn(text, from, colon) === 'connection') {
          const value = valueIn(text, colon, end).toLowerCase()
          if (value === 'keep-alive') head.closes = false
          else if (/(?:^|,)[\t ]*close[\t ]*(?:,|$)/.test(value)) head.closes = true
        }
        break
      case 12:
        if (nameIn(text, from, colon) === 'cache-status')
          head.outcome = cacheOutcomeOf(valueIn(text, colon, end))
        break
      case 13:
        if (nameIn(text, from, colon) === 'last-modified') modified = valueIn(text, colon, end)
        break
      case 14:
        if (nameIn(text, from, colon) === 'content-length') {
          const [, length] = lengthValue.exec(text.slice(colon + 1, end)) ?? []
          if (length === undefined || head.length >= 0) return undefined
          head.length = Number(length)
        }
        break
      case 16:
        if (nameIn(text, from, colon) === 'content-encoding') head.encoding = valueIn(text, colon, end)
        break
      case 17:
        if (nameIn(text, from, colon) === 'transfer-encoding') {
          if (head.chunked || !chunkedValue.test(text.slice(colon + 1, end))) return undefined
          head.chunked = true
        }
        break
    }
    from = end + 2
  }
  if (head.chunked && (head.length >= 0 || isHttp10)) return undefined
  head.ageSeconds = ageOf(date, modified)
  return head
}

export const emptyHead = (status: number): ResponseHead => ({
  status,
  length: -1,
  chunked: false,
  closes: false,
  etag: undefined,
  encoding: undefined,
  outcome: 'none',
  ageSeconds: undefined,
})

const isBlank = (text: string, at: number): boolean => text.charCodeAt(at) <= 32
const nameIn = (text: string, from: number, colon: number): string => text.slice(from, colon).toLowerCase()
const valueIn = (text: string, colon: number, end: number): string => text.slice(colon + 1, end).trim()

/**
 * The cache result in `cache-status` (RFC 9211). Of several caches the gateway's counts, or else that of the cache next to the
 * client. A hit with a negative ttl is stale: the gateway waits before it loads again.
 */
export const cacheOutcomeOf = (value: string): Outcome => {
  const members = value.includes(',') ? value.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/) : [value]
  const member = members.find(each => /^\s*abohawa\s*(;|$)/.test(each)) ?? members.at(-1) ?? ''
  if (/;\s*fwd=stale\b/.test(member)) return 'stale'
  if (/;\s*fwd\b/.test(member)) return 'miss'
  if (!/;\s*hit\b/.test(member)) return 'none'
  return /;\s*ttl=-/.test(member) ? 'stale' : 'hit'
}

/** Seconds from `last-modified` to `date`. */
export const ageOf = (date: string | undefined, modified: string | undefined): number | undefined => {
  if (date === undefined || modified === undefined) return undefined
  const ms = instantOf(date) - instantOf(modified)
  return ms >= 0 ? ms / 1000 : undefined
}

// A date stands in every answer of a second, and a `last-modified` in all of a cell.
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
