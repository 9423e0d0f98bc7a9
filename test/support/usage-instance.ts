// An instance as the counts see it: it remembers what it dealt, says so with every trip, and numbers its trips.

import type { Store, Take, Taken } from '../../src/stores/store.ts'

const now = Date.now()

/** One unit of three, of a day that has half of itself left. */
export const aTake: Take = {
  keyId: 'key_1',
  day: '2026-11-21',
  units: 1,
  limit: 3,
  dealt: 0,
  confirmed: 0,
  step: 1,
  endsAt: now + 43_200_000,
  keepUntil: now + 86_400_000,
}

/** The answer asks for takes like `aTake` but for what is given. */
export const instanceOn = (
  store: Store,
  instance: string,
): ((...asked: Partial<Take>[]) => Promise<Taken[]>) => {
  const dealt = new Map<string, number>()
  let sequence = 0
  return async (...asked) => {
    const takes = asked.map(each => {
      const whole = { ...aTake, ...each }
      const known = dealt.get(`${whole.keyId} ${whole.day}`) ?? 0
      return { ...whole, dealt: each.dealt ?? known, confirmed: each.confirmed ?? known }
    })
    sequence += 1
    const results = await store.take({ instance, sequence, takes })
    takes.forEach((each, i) => {
      dealt.set(`${each.keyId} ${each.day}`, each.dealt + (results[i]?.taken ?? 0))
    })
    return results
  }
}

/** Ids of keys that are counted in one step. */
export const keysOfOnePartition = (store: Store, count: number): string[] =>
  Array.from({ length: 1_000 }, (_, i) => `key_${i}`)
    .filter(id => store.partitionOf(id) === store.partitionOf('key_0'))
    .slice(0, count)
