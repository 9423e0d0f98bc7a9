// What each rule of the checker is: it reads the facts of a history, reports what broke its promise, and says how often the
// history exercised it.

import type { Answer } from '../history.ts'
import type { Facts } from './facts.ts'

export type Report = {
  /** The promise was exercised. */
  saw(): void
  /** It was broken by this event; the detail of an answer comes behind what the answer is. */
  broken(event: Answer | { readonly seq: number }, detail: string): void
}

export type Rule = (facts: Facts, report: Report) => void
