// What each rule of the checker is: it reads the facts of a history, reports what broke its promise, and says how often the
// history exercised it.

import type { Facts } from './facts.ts'

export type Report = {
  /** A promise was exercised. */
  saw(times?: number): void
  broken(seq: number, detail: string): void
}

export type Rule = (facts: Facts, report: Report) => void
