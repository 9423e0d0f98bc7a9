// The provider's error response: a status and a reason, as JSON. Thrown where a request turns out to be wrong, sent by the
// handler of the call.

/** An answer that says no. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number

  /** @param reason the sentence in the body; clients tell the kinds of 429 apart by its leading words */
  constructor(status: number, reason: string) {
    super(reason)
    this.status = status
  }
}

/** The provider's error body. */
export const errorBody = (reason: string): string => JSON.stringify({ error: true, reason })
