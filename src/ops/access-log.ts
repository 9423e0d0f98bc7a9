// A line for each answered request, put together by hand: a general logger spends on it as much as the answer costs.
// Where to write it, and when it gets there, is for log.ts.

import type { Clock } from '../clock.ts'
import { bounded, jsonText } from '../outside-text.ts'
import type { Lines } from './log.ts'

export type AnsweredRequest = {
  readonly requestId: string
  readonly method: string
  readonly url: string
  readonly endpoint: string
  readonly status: number
  readonly ms: number
  readonly keyId: string | undefined
  /** What the cache did; undefined for answers without weather. */
  readonly cache: string | undefined
}

export type AccessLogOptions = {
  /** Of answers below 500, the share that gets a line, from 0 to 1; each line tells a share below 1. */
  readonly accessShare: number
}

export const createAccessLog = (
  { accessShare }: AccessLogOptions,
  lines: Lines,
  clock: Clock,
  random = Math.random,
): ((request: AnsweredRequest) => void) => {
  const share = accessShare < 1 ? `"share":${accessShare},` : ''
  let instant = Number.NaN
  let time = ''
  const timeNow = (): string => {
    const now = clock.now()
    if (now !== instant) {
      instant = now
      time = new Date(now).toISOString()
    }
    return time
  }

  return ({ requestId, method, url, endpoint, status, ms, keyId, cache }) => {
    if (status < 500 && accessShare < 1 && random() >= accessShare) return
    lines.write(
      `{"level":"info","time":"${timeNow()}","requestId":"${requestId}","method":"${method}","url":${textOf(bounded(url))},"endpoint":"${endpoint}","status":${status},"ms":${ms},${keyId === undefined ? '' : `"keyId":${textOf(keyId)},`}${cache === undefined ? '' : `"cache":${textOf(cache)},`}${share}"msg":"answered"}\n`,
    )
  }
}

// Only text of others (consumers, the store), and quotation marks, need an escape; a look is cheaper than writing every
// character anew.
const textOf = (text: string): string => (needsEscape.test(text) ? jsonText(text) : `"${text}"`)
const needsEscape = /[^\x20-\x21\x23-\x5b\x5d-\x7e]/
