// A status other than 200 from the provider → the ProviderError it stands for. Classified by status, and only a 429
// or 400 by the leading words of its reason, because the texts change between releases of the provider. Pure.

import { hourMs, minuteMs, utcDayMs } from '../../calendar.ts'
import { ProviderError } from '../errors.ts'
import { excerptOf } from '../excerpt.ts'

// The provider sweeps its windows on its own clock; a little later than the turn is on the safe side.
const marginMs = 2_000
// Of a reason, in a line of the log.
const mostCharacters = 200

/** @param now when the answer came, ms since the epoch: the provider's windows are fixed on the clock */
export const refusalOf = (status: number, body: string, now: number): ProviderError => {
  const reason = reasonIn(body)
  const told = `the provider answered ${status}${reason ? `: ${reason}` : ''}`
  const nextTurn = (windowMs: number) => (Math.floor(now / windowMs) + 1) * windowMs + marginMs

  if (status === 429) {
    if (/^too many concurrent/i.test(reason)) return new ProviderError('provider_busy', told)
    const windowMs = /^daily/i.test(reason) ? utcDayMs : /^hourly/i.test(reason) ? hourMs : minuteMs
    return new ProviderError('provider_limited', told, { retryAt: nextTurn(windowMs) })
  }
  if (status === 401 || status === 403 || status === 404) return new ProviderError('provider_denied', told)
  if (status === 400) {
    if (/api[ _]?key/i.test(reason)) return new ProviderError('provider_denied', told)
    if (/requests? too much data/i.test(reason)) return new ProviderError('provider_too_much', told)
    return new ProviderError('provider_refused', told)
  }
  if (status === 503) return new ProviderError('provider_overloaded', told)
  if (status >= 500) return new ProviderError('provider_failing', told)
  // Redirects and anything else mean that this is not the host, path or plan we think it is.
  return new ProviderError('provider_denied', told)
}

// The reason of a JSON error body, cut to a length that is fit for a log line; HTML and other bodies tell nothing.
const reasonIn = (body: string): string => {
  try {
    const { reason } = JSON.parse(body) as { reason?: unknown }
    return typeof reason === 'string' ? excerptOf(reason, mostCharacters) : ''
  } catch {
    return ''
  }
}
