// A budget like the one of the free host, on a clock that the test moves, over a store that fails when told to.

import type { Clock } from '../../src/clock.ts'
import { type BudgetOptions, createBudget } from '../../src/provider/budget.ts'
import { freeLimits } from '../../src/provider/open-meteo/limits.ts'
import { type SpendingStore, StoreError } from '../../src/stores/store.ts'

export const budgetOn = (store: SpendingStore, clock: Clock, options: Partial<BudgetOptions> = {}) => {
  const heard: string[] = []
  const budget = createBudget(
    {
      provider: 'acc1',
      limits: freeLimits,
      reserve: 0.1,
      unit: 3,
      weightOfFailure: 1,
      longestRequestMs: 30_000,
      instances: () => 1,
      ...options,
    },
    {
      store,
      clock,
      observer: { storeAway: () => heard.push('away'), storeBack: () => heard.push('back') },
    },
  )
  return { budget, heard }
}

/** `before`: a step fails and nothing has happened. `after`: it happened, and its answer is lost. */
type Trouble = 'before' | 'after' | null

/** The store with a switch, with something that happens while it takes its time, and with the steps that were tried. */
export const troubled = (store: SpendingStore) => {
  const state: { trouble: Trouble; delay: () => void; steps: string[] } = {
    trouble: null,
    delay: () => {},
    steps: [],
  }
  const step = async <Value>(name: string, act: () => Promise<Value>): Promise<Value> => {
    state.steps.push(name)
    const { trouble } = state
    if (trouble === 'before') throw new StoreError('not reached')
    const value = await act()
    state.delay()
    if (trouble === 'after') throw new StoreError('the answer was lost')
    return value
  }
  const wrapped: SpendingStore = {
    reserve: reservation => step('reserve', () => store.reserve(reservation)),
    settle: correction => step('settle', () => store.settle(correction)),
    closeUntil: (provider, until) => step('closeUntil', () => store.closeUntil(provider, until)),
    spending: (provider, names) => step('spending', () => store.spending(provider, names)),
  }
  return { store: wrapped, state }
}
