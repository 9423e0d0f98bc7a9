// How the parts of the embedded store answer. SQLite does so at once; the promises are the contract's, and carry its
// errors.

import { messageOf } from '../errors.ts'
import { StoreError } from './store.ts'

/** Runs a step and turns what it throws into StoreError. */
export type Attempt = <Value>(step: () => Value) => Promise<Value>

/** @param path of the file, for the sentence */
export const attemptsOn =
  (path: string): Attempt =>
  async step => {
    try {
      return step()
    } catch (cause) {
      throw new StoreError(`the embedded store ${path} failed: ${messageOf(cause)}`, { cause })
    }
  }
