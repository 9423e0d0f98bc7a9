// Which `retry-after` a 500 may have. After a failure of the provider it is the backoff of a cell, drawn at random, or the wait of the
// circuit; where a limit is used up, at most until its window ends; where nobody knows when it ends, always the same. A gateway
// may have it from another one, whose clock differs.

import type { Answer } from '../history.ts'
import { fleetConstants } from '../settings.ts'
import { day, durationOf, type Facts, hour, minute, second } from './facts.ts'

const usualPause = 10
const endless = new Set(['store_unavailable', 'waited_too_long', 'timeline_exhausted', 'internal_error'])
const limits = new Set(['provider_limited', 'key_share_used_up'])
/** What bounds the wait after a failure: of the circuit, of a point that the provider refused, and of any other cell. */
const boundOf = (code: string): string => {
  if (code === 'provider_circuit_open') return 'PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST'
  return code === 'provider_refused' || code === 'provider_too_much'
    ? 'PROVIDER__REFUSED_FOR'
    : 'CACHE__RETRY_AFTER_AT_MOST'
}

export const isPause = (facts: Facts, { method, body, sent }: Answer, value: string): boolean => {
  const seconds = Number(value)
  if (!/^[1-9]\d*$/.test(value)) return false
  const code = /"code":"(\w+)"/.exec(body)?.[1] ?? ''
  if (endless.has(code)) return seconds === usualPause
  // An answer to HEAD does not say what failed.
  const isHidden = method === 'HEAD'
  const longestWindow = facts.settingsAt(sent.seq)['provider.budget.perDay'] ? day : hour
  const constants: Readonly<Record<string, string>> = { ...fleetConstants, ...facts.schedule.constants }
  const longest =
    isHidden || limits.has(code)
      ? longestWindow + minute
      : durationOf(constants[`ABOHAWA_TEST_${boundOf(code)}`])
  return seconds <= Math.ceil((longest + facts.skewSpan) / second)
}
