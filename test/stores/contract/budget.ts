// How every store shares the budget of a provider among gateways and consumers.

import { roomOf } from '../../../src/stores/fair-share.ts'
import type { Spending, Spent } from '../../../src/stores/spending-store.ts'
import type { Store } from '../../../src/stores/store.ts'
import { createRandom } from '../../../tools/load/traffic/generate/random.ts'
import { closeIn, closureIn, spendingStep, spendingWindow, usedIn, usedOf } from '../spending.ts'
import type { ContractTest } from './contract-test.ts'

export const budgetContract = (test: ContractTest): void => {
  const keepUntil = Date.now() + 86_400_000
  const now = Date.now()
  const windows = [
    spendingWindow({ name: 'minute:7', limit: 10_000, keepUntil }),
    spendingWindow({ name: 'day:1', limit: 40_000, keepUntil }),
  ]
  const spend = spendingStep({ provider: 'acc1', windows, wanted: 6_000, now })
  const nothingMore = { closure: null, reopenedAt: 0, claims: [] }
  const charged = (...amounts: number[]) => amounts.map(amount => ({ charged: amount, refunded: 0 }))
  const usedNow = (store: Store, ...names: string[]) => usedIn(store, 'acc1', names, now)

  test('a reservation is cut to whole units that fit into every window, and counted in all', async (t, store) => {
    for (const [wanted, granted, sum] of [
      [8_999, 6_000, 6_000],
      [6_000, 3_000, 9_000],
      [6_000, 0, 9_000],
    ] as const)
      t.strictSame(await store.spend({ ...spend, wanted }), {
        ...nothingMore,
        granted,
        spent: charged(sum, sum),
      })
    t.strictSame(await usedNow(store, 'day:1', 'minute:7', 'minute:8'), [9_000, 9_000, 0])
    t.strictSame(await usedIn(store, 'acc2', ['minute:7'], now), [0])
  })

  test('the tightest window decides, and a limit lowered below the count grants nothing', async (t, store) => {
    const [minute, day] = windows
    if (!minute || !day) return
    const nextMinute = { ...minute, name: 'minute:8' }
    t.equal((await store.spend({ ...spend, wanted: 9_000 })).granted, 9_000)
    const tight = { ...spend, windows: [nextMinute, { ...day, limit: 12_500 }], wanted: 9_000 }
    t.strictSame(await store.spend(tight), { ...nothingMore, granted: 3_000, spent: charged(3_000, 12_000) })
    const lowered = { ...spend, windows: [nextMinute, { ...day, limit: 5_000 }] }
    t.strictSame(await store.spend(lowered), { ...nothingMore, granted: 0, spent: charged(3_000, 12_000) })
  })

  const telling = (...told: [name: string, known: Spent, added: Spent][]) =>
    spendingStep({
      provider: 'acc1',
      now,
      windows: told.map(([name, known, added]) => spendingWindow({ name, keepUntil, known, added })),
    })
  const spentAs = (amount: number, refunded = 0): Spent => ({ charged: amount, refunded })

  test('what is given back may be granted again, and a window without a limit bounds nothing', async (t, store) => {
    await store.spend(spend)
    const back = telling(
      ['minute:7', spentAs(0), spentAs(0, 6_000)],
      ['day:1', spentAs(0), spentAs(0, 2_000)],
      ['minute:8', spentAs(0), spentAs(1_500)],
    )
    t.match(await store.spend({ ...back, wanted: 3_000 }), { spent: [{ refunded: 6_000 }, {}, {}] })
    t.strictSame(await usedNow(store, 'minute:7', 'day:1', 'minute:8'), [0, 4_000, 1_500])
    t.equal((await store.spend({ ...spend, wanted: 9_000 })).granted, 9_000)
  })

  test('what was lost is taken over from whoever knows it, before anything is granted', async (t, store) => {
    const known = windows.map(window => ({ ...window, known: spentAs(9_000, 3_000) }))
    const spent = { charged: 12_000, refunded: 3_000 }
    t.match(await store.spend({ ...spend, windows: known }), { granted: 3_000, spent: [spent, spent] })
    // What another gateway gave back since is no loss, although less is spent than this one knows.
    await store.spend(
      telling(['minute:7', spentAs(0), spentAs(0, 9_000)], ['day:1', spentAs(0), spentAs(0, 9_000)]),
    )
    t.match(await store.spend({ ...spend, windows: known }), { granted: 6_000 })
    t.strictSame(await usedNow(store, 'minute:7', 'day:1'), [6_000, 6_000])
    await store.spend(telling(['minute:7', spentAs(15_000, 3_000), spentAs(500)]))
    t.strictSame(await usedNow(store, 'minute:7'), [6_500], 'the larger of each, and what comes on top')
  })

  test('claims of consumers are granted as roomOf says, whatever came before', async (t, store) => {
    const random = createRandom(7, 'claims')
    const below = (most: number) => Math.floor(random() * most)
    const model = new Map<string, { used: number; by: Map<string, number> }>()
    const useOf = (name: string) => model.getOrInsertComputed(name, () => ({ used: 0, by: new Map() }))
    for (let step = 0; step < 60; step++) {
      const windows = ['minute:7', 'hour:2', 'day:1'].map((name, i) => {
        const limit = (i + 1) * 40_000
        const shares = { soloLimit: limit - 4_000, share: limit / (2 + below(20)), pacedLimit: below(limit) }
        return { name, limit, keepUntil, shares: below(8) === 0 ? undefined : shares }
      })
      const claims = ['a', 'b', 'c', 'd']
        .filter(() => below(step < 20 ? 4 : 2) === 0)
        .map(consumer => ({ consumer, wanted: below(4) * 3_000 }))
      const wanted = below(3) === 0 ? 3_000 : 0
      const reply = await store.spend({ ...spend, windows: windows.map(spendingWindow), wanted, claims })

      const uses = windows.map(({ name }) => useOf(name))
      const grantOf = (amount: number, rooms: number[]) =>
        Math.max(0, Math.floor(Math.min(amount, ...rooms) / 3_000)) * 3_000
      const forNobody = grantOf(
        wanted,
        windows.map(({ limit }, i) => limit - (uses[i]?.used ?? 0)),
      )
      for (const use of uses) {
        use.used += forNobody
        for (const { consumer } of claims) use.by.set(consumer, use.by.get(consumer) ?? 0)
      }
      const expected = claims.map(({ consumer, wanted: amount }) => {
        const rooms = windows.map(({ limit, shares }, i) => {
          const { used, by } = uses[i] ?? useOf('')
          return roomOf({ limit, used, usedBy: by.get(consumer) ?? 0, isAlone: by.size === 1 }, shares, 3_000)
        })
        const granted = grantOf(amount, rooms)
        for (const use of uses) {
          use.used += granted
          use.by.set(consumer, (use.by.get(consumer) ?? 0) + granted)
        }
        return { granted, heldIn: rooms.flatMap((room, i) => (room - granted < 3_000 ? [i] : [])) }
      })
      t.strictSame(reply.claims, expected, `step ${step}`)
      t.strictSame(
        usedOf(reply),
        uses.map(({ used }) => used),
      )
      if (below(3) > 0) continue
      // Some of it is given back, as after requests that failed.
      const returns: Spending['returns'][number][] = []
      const told = windows.map(({ name }, window) => {
        const { by, used } = useOf(name)
        let sum = 0
        for (const [consumer, amount] of by) {
          const part = below(amount + 1)
          returns.push({ consumer, window, by: part })
          by.set(consumer, amount - part)
          sum += part
        }
        useOf(name).used = used - sum
        return spendingWindow({ name, keepUntil, added: spentAs(0, sum) })
      })
      await store.spend(spendingStep({ provider: 'acc1', now, windows: told, returns }))
    }
    await closeIn(store, 'acc1', { ...closing, until: now + 9_000 })
    const claims = [{ consumer: 'a', wanted: 3_000 }]
    t.match(await store.spend({ ...spend, claims }), { granted: 0, claims: [{ granted: 0 }] })
  })

  test('a consumer that asks for nothing yet is there, so that another is not alone', async (t, store) => {
    const shares = { soloLimit: 36_000, share: 9_000, pacedLimit: 0 }
    const windows = [spendingWindow({ name: 'day:1', limit: 40_000, keepUntil, shares })]
    const of = async (...claims: { consumer: string; wanted: number }[]) =>
      (await store.spend({ ...spend, windows, wanted: 0, claims })).claims.map(({ granted }) => granted)
    t.strictSame(await of({ consumer: 'greedy', wanted: 15_000 }), [15_000], 'nobody else wants it')
    t.strictSame(await of({ consumer: 'greedy', wanted: 3_000 }, { consumer: 'other', wanted: 0 }), [0, 0])
    t.strictSame(await of({ consumer: 'greedy', wanted: 3_000 }), [0], 'it is remembered for the window')
    t.strictSame(await of({ consumer: 'other', wanted: 12_000 }), [9_000])
  })

  const closing = { at: now, reason: 'the provider answered 429' }

  test('a closed provider grants nothing until the later of two instants, and another is open', async (t, store) => {
    const closure = { ...closing, until: now + 9_000 }
    await closeIn(store, 'acc1', closure)
    await closeIn(store, 'acc1', { until: now + 5_000, at: now, reason: 'a shorter one' })
    const closed = { granted: 0, closure, reopenedAt: 0, spent: charged(0, 0), claims: [] }
    t.strictSame(await store.spend(spend), closed)
    t.strictSame(await store.spend({ ...spend, now: now + 8_999 }), closed)
    t.equal((await store.spend({ ...spend, provider: 'acc2' })).granted, 6_000)
    const again = await store.spend({ ...spend, now: now + 9_000 })
    t.strictSame(again, { ...nothingMore, granted: 6_000, spent: charged(6_000, 6_000) })
  })

  test("a closure that can't be right closes nothing, and gives way to one that can", async (t, store) => {
    const day = 86_400_000
    await closeIn(store, 'acc1', { ...closing, until: now + 3 * day })
    t.equal((await store.spend(spend)).granted, 6_000, 'the provider has no window of that length')
    await closeIn(store, 'acc1', { ...closing, at: now + day / 4, until: now + day / 2 })
    t.equal((await store.spend(spend)).closure, null, 'of a clock that was set back since')
    await closeIn(store, 'acc1', { ...closing, until: now + 9_000 })
    t.match(await store.spend(spend), { closure: { until: now + 9_000 } })
    await store.reopen('acc2', now + 3 * day)
    t.equal((await closureIn(store, 'acc2', now)).reopenedAt, 0, 'nor is a reopening of such a clock known')
  })

  test('a reopening ends the closure, says what it was, and refuses closures from before it', async (t, store) => {
    const closure = { ...closing, until: now + 9_000 }
    const found = () => closureIn(store, 'acc1', now)
    t.strictSame(await found(), { closedUntil: null, reason: null, reopenedAt: 0 })
    await closeIn(store, 'acc1', closure)
    t.strictSame(await found(), { closedUntil: closure.until, reason: closing.reason, reopenedAt: 0 })
    t.strictSame(await store.reopen('acc1', now + 10), { closure, reopenedAt: now + 10 })
    t.strictSame(await found(), { closedUntil: null, reason: null, reopenedAt: now + 10 })
    t.match(await store.spend(spend), { granted: 6_000, closure: null, reopenedAt: now + 10 })
    t.equal((await closureIn(store, 'acc2', now)).reopenedAt, 0, 'another provider is as it was')

    t.match(await closeIn(store, 'acc1', closure, 0), { closure: null, reopenedAt: now + 10 })
    t.equal((await found()).closedUntil, null, 'who does not know the reopening closes nothing')
    await closeIn(store, 'acc1', closure, now + 10)
    t.hasStrict(await store.spend(spend), { granted: 0, closure })
    const again = await store.reopen('acc1', now)
    t.equal(again.reopenedAt, now + 11, 'later than any before, whatever the clock of the caller')
    await closeIn(store, 'acc1', closure, null)
    t.equal((await found()).closedUntil, closure.until, 'who knows nothing yet is believed')
    await closeIn(store, 'acc1', { ...closure, until: now + 500 }, now + 20)
    t.match(await found(), { closedUntil: now + 500, reopenedAt: now + 20 }, 'a lost one is taken over')
  })

  test('a reopening of long ago ends no closure of today', async (t, store) => {
    const longAgo = now - 60 * 3_600_000
    await store.reopen('acc1', longAgo)
    const closure = { ...closing, until: now + 9_000 }
    await closeIn(store, 'acc1', closure, longAgo)
    const { closure: found } = await store.spend(spendingStep({ provider: 'acc1', now, reopenedAt: longAgo }))
    t.strictSame(found, closure, 'for another gateway that knows the reopening')
    t.equal((await closureIn(store, 'acc1', now)).closedUntil, closure.until)
  })

  test('50 reservations at once never cross a limit together, and leave nothing that would fit', async (t, store) => {
    const windows = [
      spendingWindow({ name: 'minute:7', limit: 100_000, keepUntil }),
      spendingWindow({ name: 'minute:8', limit: 83_000, keepUntil }),
    ]
    const requests = Array.from({ length: 50 }, (_, i) =>
      store.spend({ ...spend, windows, wanted: 3_000 * (1 + (i % 4)) }),
    )
    const granted = (await Promise.all(requests)).reduce((sum, reply) => sum + reply.granted, 0)
    t.equal(granted, 81_000)
    t.strictSame(await usedNow(store, 'minute:7', 'minute:8'), [81_000, 81_000])
  })
}
