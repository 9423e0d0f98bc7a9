// Without it a gateway could take units that others have admitted in an outage, or let requests wait after a loss.

import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { StoreError, type UsageEntry, type UsageGrant } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { newCount, oneCount } from './meters.ts'

const unitsOf = ({ units, runs }: UsageEntry): number =>
  runs?.reduce((sum, { unitsEach, requests }) => sum + unitsEach * requests, 0) ?? units

/** Grants all that is requested. @param before units that were used already */
const granted = (entries: readonly UsageEntry[], before = 0): UsageGrant[] =>
  entries.map(entry => ({ granted: unitsOf(entry), before, used: before + unitsOf(entry) }))
const isAway = () => Promise.reject(new StoreError('away'))

t.test('others have two seconds to report, and operators are told why', async t => {
  const clock = manualClock()
  const observed: unknown[] = []
  const { partition } = oneCount(async ({ entries }) => granted(entries), {
    clock,
    observer: {
      stopped: reason => observed.push(reason),
      resumed: units => observed.push(units),
      counted: () => {},
    },
  })
  partition.onMessagesLost()
  for (const [afterMs, state] of [
    [0, 'reconciling'],
    [1_999, 'reconciling'],
    [1, 'counting'],
  ] as const) {
    clock.advance(afterMs)
    await partition.probe()
    t.equal(partition.state(), state)
  }
  t.strictSame(observed, ['the subscription to the counts of other gateways was lost', 0])
})

t.test('counts are reported a hundred at a time, first those with units that the store lacks', async t => {
  const counts = Array.from({ length: 250 }, (_, i) => newCount(`key_${i}`))
  const last = { ...newCount('key_250'), lastKnown: { used: 0, admitted: 0 } }
  const sent: string[][] = []
  let fails = true
  const { partition } = oneCount(
    async ({ entries }) => {
      if (fails) throw new StoreError('away')
      sent.push(entries.map(({ keyId }) => keyId))
      return granted(entries)
    },
    {
      counts: function* () {
        for (const count of [...counts, last]) yield* [undefined, count]
      },
    },
  )
  await new Promise<unknown>(resolve => partition.consume(last, 1_000, 1, (_, decision) => resolve(decision)))
  t.equal(last.admitted, 1)
  fails = false
  await partition.probe()
  t.strictSame(sent[0], ['key_250'])
  t.strictSame(
    sent.map(({ length }) => length),
    [1, 100, 100, 51],
  )
})

t.test('what is admitted while counts are reported is reported before others are waited for', async t => {
  let [batches, admittedOf] = [0, 0]
  let fails = false
  const { partition, admit } = oneCount(async ({ entries }) => {
    if (fails) throw new StoreError('away')
    batches += 1
    admittedOf = entries[0]?.admitted ?? 0
    // Of what the store lacks, then of all.
    if (batches === 2) t.match(await admit(), { allowed: true })
    return granted(entries)
  })
  await admit()
  fails = true
  await admit()
  fails = false
  batches = 0
  await partition.probe()
  t.strictSame([partition.state(), admittedOf], ['reconciling', 3])
})

t.test('requests of all costs share the allowance while counts are reconciled', async t => {
  let used = 900
  const { partition, admit } = oneCount(async ({ entries }) => {
    const grants = granted(entries, used)
    used = grants[0]?.used ?? used
    return grants
  })
  await admit(0)
  partition.onMessagesLost()
  const asked = [...Array<number>(10).fill(2), ...Array<number>(60).fill(1)].map(units => admit(units))
  const ended = await Promise.allSettled(asked)
  // Of the 100 that are left, two steps of 16 are not in the allowance.
  t.equal(used, 968)
  t.equal(ended.filter(({ status }) => status === 'fulfilled').length, 58)
})

t.test('a message that comes before the reply to an earlier batch is not forgotten', async t => {
  let isLost = false
  const counted = oneCount(
    async ({ entries }) => {
      if (isLost) throw new StoreError('away')
      // On its connection, while this reply is still on its way.
      counted.partition.onMessage(counted.count, 990)
      return granted(entries, 600)
    },
    { instances: () => 2 },
  )
  await counted.admit()
  isLost = true
  await t.rejects(counted.admit(), StoreError, 'nothing is left that others may not have taken')
  t.equal(counted.count.admitted, 1)
})

t.test('without an allowance reading is allowed, and takes nothing', async t => {
  const units: number[] = []
  const { partition, admit } = oneCount(
    async ({ entries }) => {
      units.push(...entries.map(unitsOf))
      return granted(entries)
    },
    { instances: () => undefined },
  )
  partition.onMessagesLost()
  t.match(await admit(0), { allowed: true })
  t.strictSame(units, [0, 0], 'the count is read first')
})

t.test('without messages counts of others are read once a second, unless there are no others', async t => {
  const clock = manualClock()
  let [now, reads, arrive, size] = [0, 0, false, 2]
  const { partition } = oneCount(
    async ({ entries }) => {
      reads += 1
      return granted(entries)
    },
    { clock, now: () => now, usageMessagesArrive: () => arrive, instances: () => size },
  )
  const readsAt = async (at: number) => {
    ;[now, reads] = [at, 0]
    await partition.probe()
    return reads
  }
  t.strictSame(
    [await readsAt(0), await readsAt(999), await readsAt(1_000), await readsAt(1_999)],
    [1, 0, 1, 0],
  )
  arrive = true
  t.equal(await readsAt(9_000), 0)
  ;[arrive, size] = [false, 1]
  t.equal(await readsAt(9_000), 0)
  size = 2
  partition.onMessagesLost()
  await partition.probe()
  clock.advance(2_000)
  await partition.probe()
  t.strictSame(
    [await readsAt(9_000), await readsAt(9_000), await readsAt(9_999)],
    [1, 1, 0],
    'after a loss too',
  )
})

t.test('with `refuse` requests wait after a loss until all is reported, and no longer', async t => {
  const units: number[] = []
  const refuse = { whenStoreIsDown: 'refuse' } as const
  const reported = oneCount(async ({ entries }) => {
    units.push(...entries.map(unitsOf))
    return granted(entries)
  }, refuse)
  reported.partition.onMessagesLost()
  t.match(await reported.admit(), { allowed: true })
  t.strictSame([units, reported.partition.state()], [[0, 1], 'counting'])

  const { promise, reject } = Promise.withResolvers<number>()
  const failed = oneCount(isAway, { ...refuse, time: () => promise })
  failed.partition.onMessagesLost()
  const asked = failed.admit()
  await turn()
  reject(new StoreError('away'))
  await t.rejects(asked, StoreError)
  t.equal(failed.partition.state(), 'away')

  const reasons: string[] = []
  const observer = { stopped: (reason: string) => reasons.push(reason), resumed: () => {}, counted: () => {} }
  const lost = oneCount(async ({ entries }) => granted(entries), { ...refuse, observer })
  await lost.admit()
  lost.partition.onMessagesLost()
  await t.rejects(lost.admit(), StoreError)
  t.strictSame([reasons, lost.partition.state()], [['the store lost its counts'], 'reconciling'])
})

t.test('with `refuse` another loss does not cut short the time that others have to report', async t => {
  const clock = manualClock()
  let before = 0
  const { partition, admit } = oneCount(async ({ entries }) => granted(entries, before), {
    whenStoreIsDown: 'refuse',
    clock,
  })
  await admit()
  partition.onMessagesLost()
  await partition.probe()
  t.equal(partition.state(), 'reconciling', 'the store has lost its counts')
  // It has those of this instance again.
  before = 1
  clock.advance(1_000)
  partition.onMessagesLost()
  await partition.probe()
  t.equal(partition.state(), 'reconciling')
  clock.advance(2_000)
  await partition.probe()
  t.equal(partition.state(), 'counting')
  partition.onMessagesLost()
  await partition.probe()
  t.equal(partition.state(), 'counting', 'nothing was lost since')
})

t.test('a store that does not answer is away where there is no count too', async t => {
  const { partition } = oneCount(isAway, { counts: () => [].values(), time: isAway })
  partition.onMessagesLost()
  await partition.probe()
  t.equal(partition.state(), 'away')
})
