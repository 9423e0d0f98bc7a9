// Maps a response other than 200 to a ProviderError. Classifies by status, and only a 429 or 400 by the first words of its reason, because
// the texts change between releases of the provider.

import { hourMs, minuteMs, utcDayMs } from '../../common/calendar.ts'
import { excerptOf, ProviderError } from '../errors.ts'

// The provider resets its windows on its own clock; a margin after the boundary is safe.
const marginMs = 2_000
// The longest reason in a log line.
const maxCharacters = 200

/** @param now when the response came, ms since the epoch: the provider's windows are fixed on the clock */
export const refusalOf = (status: number, body: string, now: number): ProviderError => {
  const reason = reasonIn(body)
  const message = `the provider answered ${status}${reason ? `: ${reason}` : ''}`
  const nextTurn = (windowMs: number) => (Math.floor(now / windowMs) + 1) * windowMs + marginMs

  if (status === 429) {
    if (/^too many concurrent/i.test(reason)) return new ProviderError('provider_busy', message)
    const windowMs = /^daily/i.test(reason) ? utcDayMs : /^hourly/i.test(reason) ? hourMs : minuteMs
    // The published limits leave no hour or day full in its first minute: the provider still counts in the last one.
    const hasJustBegun = now % windowMs < minuteMs
    return new ProviderError('provider_limited', message, {
      retryAt: nextTurn(hasJustBegun ? minuteMs : windowMs),
    })
  }
  if (status === 400) {
    if (/api[ _]?key/i.test(reason)) return new ProviderError('provider_denied', message)
    if (/requests? too much data/i.test(reason)) return new ProviderError('provider_too_much', message)
    // A 400 without a reason comes from a proxy that refuses every request of this gateway.
    return new ProviderError(reason ? 'provider_refused' : 'provider_denied', message)
  }
  // A server or proxy on the way does not accept a URL or head of this length.
  if (status === 413 || status === 414 || status === 431)
    return new ProviderError('provider_too_much', message)
  if (status === 503) return new ProviderError('provider_overloaded', message)
  if (status >= 500) return new ProviderError('provider_failing', message)
  // Redirects, 401, 403, 404 and other statuses mean a wrong key, host, path or plan.
  return new ProviderError('provider_denied', message)
}

// The reason of a JSON error body, cut for a log line; other bodies have none.
const reasonIn = (body: string): string => {
  try {
    const { reason } = JSON.parse(body) as { reason?: unknown }
    return typeof reason === 'string' ? excerptOf(reason, maxCharacters) : ''
  } catch {
    return ''
  }
}
