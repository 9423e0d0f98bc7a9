// Judges a history by all promises. It shares no code with the product, the simulator or their tests: what it knows of the API is
// its own reading of the contract.

import type { History } from '../history.ts'
import {
  type Exercised,
  type PromiseNumber,
  promiseNumbers,
  type Verdict,
  type Violation,
} from '../promises.ts'
import { answered, withinContract } from './answers.ts'
import { withinBudget } from './budget.ts'
import { exactAfterwards, exactWhileServing, resetAtMidnight, withinLimit } from './counts.ts'
import { describe, factsOf } from './facts.ts'
import { changesInForce, revokedRefused } from './keys.ts'
import { allOrNone } from './lists.ts'
import { withinPace } from './pace.ts'
import { recovered } from './recovery.ts'
import { renewedInForce } from './renewals.ts'
import type { Report, Rule } from './rule.ts'
import { tagsNameBodies } from './tags.ts'
import { upstreamNamed } from './upstreams.ts'
import { neverBack, ofNow, purgedIsGone, saidByProvider } from './weather.ts'

const rules: Readonly<Record<PromiseNumber, Rule>> = {
  1: answered,
  2: withinContract,
  3: saidByProvider,
  4: ofNow,
  5: tagsNameBodies,
  6: withinLimit,
  7: exactWhileServing,
  8: exactAfterwards,
  9: resetAtMidnight,
  10: revokedRefused,
  11: changesInForce,
  12: withinBudget,
  13: recovered,
  14: neverBack,
  15: purgedIsGone,
  16: renewedInForce,
  17: withinPace,
  18: upstreamNamed,
  19: allOrNone,
}

const mostOfOne = 5

export const judge = (history: History): Verdict => {
  const facts = factsOf(history)
  const violations: Violation[] = []
  const exercised: Exercised = {}
  for (const promise of promiseNumbers) {
    let found = 0
    const report: Report = {
      saw: () => {
        exercised[promise] = (exercised[promise] ?? 0) + 1
      },
      broken: (event, detail) => {
        const seen = 'sent' in event ? `${describe(event)}: ${detail}` : detail
        if (++found <= mostOfOne) violations.push({ promise, seq: event.seq, detail: seen })
      },
    }
    try {
      rules[promise](facts, report)
    } catch (error) {
      // Rules rely on the form of answers, which is promise 2.
      violations.push({
        promise: 2,
        seq: 0,
        detail: `the rule of promise ${promise} can't read an answer: ${error}`,
      })
    }
  }
  return { violations, exercised }
}
