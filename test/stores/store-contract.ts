// The contract of every store, whose parts are in contract/. Each store's test file calls it once and adds its own tests.

import type { Test } from 'tap'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { budgetContract } from './contract/budget.ts'
import { contractTest } from './contract/contract-test.ts'
import { fleetContract } from './contract/fleet.ts'
import { keysContract } from './contract/keys.ts'
import { usageContract } from './contract/usage.ts'
import { spendingStep } from './spending.ts'
import { anEntry, batchOf } from './usage-instance.ts'

/** @param open a new, empty store; called once per test, closed by the contract */
export const storeContract = (t: Test, name: string, open: (t: Test) => Promise<Store>): void => {
  const test = contractTest(t, name, open)
  for (const part of [keysContract, usageContract, budgetContract, fleetContract]) part(test)

  test('it answers a ping, and a closed store throws StoreError', async (t, store) => {
    await store.ping()
    await store.close()
    await t.rejects(store.ping(), StoreError)
    await t.rejects(store.findByHash('x'), StoreError)
    await t.rejects(store.commit(batchOf('one', 1, [anEntry])), StoreError)
    await t.rejects(store.spend(spendingStep({ provider: 'acc1', now: 1 })), StoreError)
    await t.rejects(store.reopen('acc1', 1), StoreError)
  })
}
