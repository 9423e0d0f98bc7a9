// How many connections without a good key each address has.

import type { Connection } from './connection.ts'

// So long a connection that floods counts on for its address: such a client would be back at once, and each read of it may hold
// thousands of requests.
const countsOnForMs = 60_000

export class AddressCounts {
  /** Of one address. */
  max: number
  readonly #counts = new Map<string, number>()

  constructor(max: number) {
    this.max = max
  }

  /** Counts a connection; false where its address has too many. */
  add(address: string): boolean {
    const before = this.#counts.get(address) ?? 0
    if (before >= this.max) return false
    this.#counts.set(address, before + 1)
    return true
  }

  /** A connection is not counted any more. */
  release(connection: Connection): void {
    const { address } = connection
    connection.address = undefined
    if (address !== undefined) this.#remove(address)
  }

  closed(connection: Connection): void {
    const { address, isFlooding } = connection
    if (!isFlooding || address === undefined) this.release(connection)
    // The address alone: the connection holds all requests of its last read.
    else setTimeout(() => this.#remove(address), countsOnForMs).unref()
  }

  #remove(address: string): void {
    const left = (this.#counts.get(address) ?? 1) - 1
    if (left === 0) this.#counts.delete(address)
    else this.#counts.set(address, left)
  }
}
