// Which `retry-after` a 500 may have. After a failure of the provider it is the backoff of a cell or the wait of the circuit, both drawn
// at random; where a limit is used up, at most until its window ends; where nobody knows when it ends, always the same. A gateway
// may have it from another one, whose clock differs.

import type { Answer } from '../history.ts'
import { day, type Facts, hour, minute, second } from './facts.ts'

const usualPause = 10
// Of the circuit, which is longer than that of a cell, and of a point that the provider refused.
const longestWait = minute
const longestRefusal = 10 * minute
const endless = new Set(['store_unavailable', 'waited_too_long', 'timeline_exhausted', 'internal_error'])
const limits = new Set(['provider_limited', 'key_share_used_up'])

export const isPause = (facts: Facts, { method, body, sent }: Answer, value: string): boolean => {
  const seconds = Number(value)
  if (!/^[1-9]\d*$/.test(value)) return false
  const code = /"code":"(\w+)"/.exec(body)?.[1] ?? ''
  if (endless.has(code)) return seconds === usualPause
  // An answer to HEAD does not say what failed.
  const isHidden = method === 'HEAD'
  const longestWindow = facts.settingsAt(sent.seq)['provider.budget.perDay'] ? day : hour
  const longest =
    isHidden || limits.has(code)
      ? longestWindow + minute
      : code === 'provider_refused'
        ? longestRefusal
        : longestWait
  return seconds <= Math.ceil((longest + facts.skewSpan) / second)
}
