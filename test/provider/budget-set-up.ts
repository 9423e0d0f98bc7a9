// Test helper: a budget with the limits of the free host, on a manual clock, over a store with fault injection.

import type { Test } from 'tap'
import type { Clock } from '../../src/common/clock.ts'
import { Budget, type BudgetOptions, type BudgetState } from '../../src/provider/budget.ts'
import type { SpendingStore } from '../../src/stores/spending-store.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { StoreError } from '../../src/stores/store.ts'
import { freeLimits } from '../../tools/provider/limits.ts'
import { manualClock } from '../support/manual-clock.ts'

export const budgetOn = (store: SpendingStore, clock: Clock, options: Partial<BudgetOptions> = {}) => {
  const events: string[] = []
  const budget = new Budget(
    {
      provider: 'acc1',
      limits: freeLimits,
      reserve: 0.1,
      keyShare: 0.25,
      outageShare: null,
      unit: 3,
      weightOfFailure: 1,
      longestRequestMs: 30_000,
      instances: () => 1,
      ...options,
    },
    {
      store,
      clock,
      observer: {
        storeAway: () => events.push('away'),
        storeBack: () => events.push('back'),
        reopened: closedUntil => events.push(`reopened ${closedUntil}`),
      },
    },
  )
  return { budget, events }
}

/** The provider reports a limit, in answer to some request. */
export const limit = async (budget: Budget, until: number, reason: string): Promise<void> =>
  (await budget.reserve(0, 'cold')).limited(until, reason)

/** `before`: the step fails without effect. `after`: it takes effect and its reply is lost. */
type StoreFault = 'before' | 'after' | null

/** The store with a fault to inject, a callback before each reply, and the list of steps tried. */
export const faultyStore = (store: SpendingStore) => {
  const state: { fault: StoreFault; delay: () => void; steps: string[] } = {
    fault: null,
    delay: () => {},
    steps: [],
  }
  const step = async <Value>(name: string, act: () => Promise<Value>): Promise<Value> => {
    state.steps.push(name)
    const { fault } = state
    if (fault === 'before') throw new StoreError('not reached')
    const value = await act()
    state.delay()
    if (fault === 'after') throw new StoreError('the answer was lost')
    return value
  }
  const wrapped: SpendingStore = {
    spend: spending => step('spend', () => store.spend(spending)),
    reopen: (provider, now) => step('reopen', () => store.reopen(provider, now)),
  }
  return { store: wrapped, state }
}

/** A budget over an embedded store of its own. */
export const openBudget = (
  t: Pick<Test, 'teardown'>,
  options: Partial<BudgetOptions> = {},
  start = '2026-11-21T06:10:30Z',
) => {
  const clock = manualClock(start)
  const healthy = openEmbeddedStore(':memory:', clock)
  t.teardown(() => healthy.close())
  const { store, state } = faultyStore(healthy)
  return { ...budgetOn(store, clock, options), clock, store, state, healthy }
}

export const usedIn = ({ windows }: BudgetState): number[] => windows.map(({ used }) => used)
