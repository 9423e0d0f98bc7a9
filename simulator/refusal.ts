// The provider's error response: a status and a reason, as JSON. The parsers of a request throw it, and the handler of the
// call sends it.

/** An error response. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number

  /** @param reason the sentence in the body; clients distinguish the kinds of 429 by its first words */
  constructor(status: number, reason: string) {
    super(reason)
    this.status = status
  }
}

/** The provider's error body. */
export const errorBody = (reason: string): string => JSON.stringify({ error: true, reason })
