// A refused request of an operator: a status, a reason for the metric, one sentence.
// Decides nothing; the part that finds the fault creates one.

import type { RefusalReason } from '../../telemetry/label-values.ts'

/** Thrown or returned by a check, sent by the listener. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number
  readonly reason: RefusalReason
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    reason: RefusalReason,
    sentence: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(sentence)
    this.status = status
    this.reason = reason
    this.headers = headers
  }
}

/** Hears of every refusal, and of connections that were dropped; `from` is the address of the caller, where it is known. */
export type RefusalObserver = { refused(reason: RefusalReason, from?: string): void }
