// A test of the contract, whose store is new, empty, and closed with it.

import type { Test } from 'tap'
import type { Store } from '../../../src/stores/store.ts'

export type ContractTest = (title: string, body: (t: Test, store: Store) => Promise<void>) => void

/** @param name of the kind of store */
export const contractTest =
  (t: Test, name: string, open: (t: Test) => Promise<Store>): ContractTest =>
  (title, body) =>
    void t.test(`${name}: ${title}`, async t => {
      const store = await open(t)
      t.teardown(() => store.close())
      await body(t, store)
    })
