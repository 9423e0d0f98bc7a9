// Which `retry-after` a 500 may have. After a failure of the provider it is the backoff of a cell, which is drawn at random up to the
// longest; where a limit is used up, at most until its window ends; where nobody knows when it ends, always the same.

import type { Answer } from '../history.ts'
import { day, type Facts, hour, minute, second } from './facts.ts'

const usualPause = 10
// What the gateways of a history are started with: fleet/settings.ts.
const longestBackoff = 5
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
  const ofLimit = (longestWindow + minute + facts.skewSpan) / second
  return seconds <= (isHidden || limits.has(code) ? ofLimit : longestBackoff)
}
