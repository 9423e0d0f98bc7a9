// Test helper: steps of the provider's budget in a store, with what a test says of them and nothing else known.

import type {
  Closure,
  Spending,
  SpendingReply,
  SpendingStore,
  SpendingWindow,
} from '../../src/stores/spending-store.ts'

const none = { charged: 0, refunded: 0 }

/** A window of which nothing is known. */
export const spendingWindow = (
  window: Pick<SpendingWindow, 'name' | 'keepUntil'> & Partial<SpendingWindow>,
): SpendingWindow => ({ limit: null, known: none, added: none, ...window })

/** A step that wants, knows and reports nothing but what is given. */
export const spendingStep = (step: Partial<Spending> & Pick<Spending, 'provider' | 'now'>): Spending => ({
  ...{ windows: [], wanted: 0, claims: [], returns: [], unit: 3_000, closure: null, reopenedAt: null },
  ...step,
})

export const usedOf = ({ spent }: Pick<SpendingReply, 'spent'>): number[] =>
  spent.map(({ charged, refunded }) => charged - refunded)

/** What a store has of windows, in thousandths. */
export const usedIn = async (
  store: SpendingStore,
  provider: string,
  names: readonly string[],
  now: number,
): Promise<number[]> => {
  const windows = names.map(name => spendingWindow({ name, keepUntil: now + 86_400_000 }))
  return usedOf(await store.spend(spendingStep({ provider, windows, now })))
}

/** The closure that a store has, and the last reopening. */
export const closureIn = async (
  store: SpendingStore,
  provider: string,
  now: number,
): Promise<{ closedUntil: number | null; reason: string | null; reopenedAt: number }> => {
  const { closure, reopenedAt } = await store.spend(spendingStep({ provider, now }))
  return { closedUntil: closure?.until ?? null, reason: closure?.reason ?? null, reopenedAt }
}

/** Closes a provider as a gateway does. @param reopenedAt the last reopening that it knows */
export const closeIn = (
  store: SpendingStore,
  provider: string,
  closure: Closure,
  reopenedAt: number | null = 0,
): Promise<SpendingReply> => store.spend(spendingStep({ provider, now: closure.at, closure, reopenedAt }))
