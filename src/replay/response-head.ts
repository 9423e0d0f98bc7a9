// What the head of an answer says to a replay: status, how its body is framed, what the cache did and how old the weather is.
// One pass over the lines and no objects for the others: this runs once for each answer.

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

/** @param text the head with its line breaks, in Latin-1. @returns undefined for what is no head of HTTP/1.1 */
export const headOf = (text: string): ResponseHead | undefined => {
  // HTTP/1.1 200
  if (!text.startsWith('HTTP/1.')) return undefined
  const status = Number(text.slice(9, 12))
  if (!(status >= 100 && status <= 999)) return undefined
  const head = emptyHead(status)
  head.closes = text.charCodeAt(7) === 48
  let date: string | undefined
  let modified: string | undefined
  let from = text.indexOf('\r\n') + 2
  for (;;) {
    const end = text.indexOf('\r\n', from)
    if (end <= from) break
    const colon = text.indexOf(':', from)
    if (colon < 0 || colon > end) return undefined
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
          if (value === 'close') head.closes = true
          else if (value === 'keep-alive') head.closes = false
        }
        break
      case 12:
        if (nameIn(text, from, colon) === 'cache-status') head.outcome = outcomeOf(valueIn(text, colon, end))
        break
      case 13:
        if (nameIn(text, from, colon) === 'last-modified') modified = valueIn(text, colon, end)
        break
      case 14:
        if (nameIn(text, from, colon) === 'content-length') head.length = Number(valueIn(text, colon, end))
        break
      case 16:
        if (nameIn(text, from, colon) === 'content-encoding') head.encoding = valueIn(text, colon, end)
        break
      case 17:
        if (nameIn(text, from, colon) === 'transfer-encoding')
          head.chunked = valueIn(text, colon, end).toLowerCase().endsWith('chunked')
        break
    }
    from = end + 2
  }
  if (Number.isNaN(head.length)) return undefined
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

const nameIn = (text: string, from: number, colon: number): string => text.slice(from, colon).toLowerCase()
const valueIn = (text: string, colon: number, end: number): string => text.slice(colon + 1, end).trim()

/**
 * What a cache did, by its `cache-status` (RFC 9211). Of several caches the gateway counts, and without it the one next to
 * the client. A hit with a negative ttl is stale: the gateway waits before it loads again.
 */
export const outcomeOf = (value: string): Outcome => {
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
const mostInstants = 5_000

const instantOf = (text: string): number => {
  const found = instants.get(text)
  if (found !== undefined) return found
  if (instants.size >= mostInstants) instants.clear()
  const instant = Date.parse(text)
  instants.set(text, instant)
  return instant
}
