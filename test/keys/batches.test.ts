// Without it each request would cost its own round trip to the store, or a lost reply an outage.

import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { StoreError } from '../../src/stores/store.ts'
import { newCount, oneCount } from './meters.ts'

/**
 * The units of the first batch where turns of the event loop bring so many requests and take so long.
 * @param earlier requests of a batch before it
 */
const unitsOfFirst = async (requests: readonly number[], turnMs = 0, earlier = 0): Promise<number> => {
  let now = 1_000
  let first: number | undefined
  const { admit } = oneCount(
    async ({ entries }) => {
      first ??= entries[0]?.units
      return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
    },
    { now: () => now },
  )
  await Promise.all(Array.from({ length: earlier }, () => admit()))
  first = undefined
  const admitted: Promise<unknown>[] = []
  for (const many of requests) {
    for (let i = 0; i < many; i++) admitted.push(admit())
    await turn()
    now += turnMs
  }
  await Promise.all(admitted)
  return first ?? 0
}

t.test('a batch grows for a few turns while each brings more, until there are many', async t => {
  t.equal(await unitsOfFirst([1, 0, 1]), 1, 'sent after the first turn that brings none')
  t.equal(await unitsOfFirst([1, 1, 1, 0, 1]), 3)
  t.equal(await unitsOfFirst(Array(20).fill(1)), 16, 'and after sixteen in any case')
  t.equal(await unitsOfFirst([1, 31, 1]), 32, 'or once they are many')
  for (const earlier of [0, 1, 32])
    for (const requests of [
      [32, 1],
      [31, 1],
    ])
      t.equal(await unitsOfFirst(requests, 0, earlier), 32)
})

t.test('it grows for a millisecond at most, however few the turns', async t => {
  const units = await unitsOfFirst(Array(20).fill(1), 0.4)
  t.ok(units > 1 && units <= 4, `${units} units`)
  t.equal(await unitsOfFirst(Array(20).fill(1), 0.5), 3)
  t.equal(await unitsOfFirst([1, 1, 1], 5), 2, 'long turns bring those of the next one at most')
})

const hangs = () => new Promise<number[]>(() => {})
const fails = () => Promise.reject(new StoreError('away'))
// Without a day a store answers from what it holds, and reads no count.
const answers = async (keyId: string, days: readonly string[]) => {
  if (keyId !== 'key_1' || days.join() !== '2026-11-21') throw new Error('another count was read')
  return [0]
}

for (const [title, lost, usedOn, sent, state] of [
  ['sent again while the server of its counts answers', 2, answers, 3, 'counting'],
  ['sent three times at most', 3, answers, 3, 'away'],
  ['sent once where that server hangs, although others answer', 1, hangs, 1, 'away'],
  ['sent once where that server fails, although others answer', 1, fails, 1, 'away'],
] as const)
  t.test(`a batch without a reply is ${title}`, async t => {
    let batches = 0
    const { admit, partition } = oneCount(
      async ({ entries }) => {
        batches += 1
        if (batches <= lost) throw new StoreError('it did not answer within 500 ms')
        return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
      },
      { usedOn },
    )
    if (state === 'counting') t.strictSame(await admit(), { allowed: true, remaining: 999 })
    else await t.rejects(admit(), { name: 'StoreError' })
    t.strictSame([batches, partition.state()], [sent, state])
  })

t.test('batches are numbered from 1, each once', async t => {
  const numbers: number[] = []
  const { admit } = oneCount(async ({ sequence, entries }) => {
    numbers.push(sequence)
    return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
  })
  for (let i = 0; i < 3; i++) await admit()
  t.strictSame(numbers, [1, 2, 3])
})

t.test('a batch has the counts of 500 keys at most, and the next one the others', async t => {
  const sizes: number[] = []
  const { partition } = oneCount(async ({ entries }) => {
    sizes.push(entries.length)
    return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
  })
  const ask = (keyId: string) =>
    new Promise(resolve => partition.consume(newCount(keyId), 1_000, 1, (_, decision) => resolve(decision)))
  await Promise.all(Array.from({ length: 501 }, (_, i) => ask(`key_${i}`)))
  t.strictSame(sizes, [500, 1])
})

t.test('requests of a unit each are sent as a number, others as runs', async t => {
  const sent: unknown[] = []
  const { admit } = oneCount(async ({ entries }) => {
    for (const { units, runs } of entries) sent.push(runs ?? units)
    return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
  })
  for (const costs of [[1, 1], [2], [1, 2], [0], [0, 2]]) await Promise.all(costs.map(units => admit(units)))
  t.strictSame(sent, [
    2,
    [{ unitsEach: 2, requests: 1 }],
    [
      { unitsEach: 1, requests: 1 },
      { unitsEach: 2, requests: 1 },
    ],
    0,
    [{ unitsEach: 2, requests: 1 }],
  ])
})

for (const [title, costs] of [
  ['of a list each', Array<number>(100).fill(2)],
  ['that take a unit or none in turn', Array.from({ length: 100 }, (_, i) => i % 2)],
  ['of any costs', Array.from({ length: 100 }, (_, i) => (i * 7) % 5)],
] as const)
  t.test(`requests of one key that wait share a batch: a hundred ${title}`, async t => {
    let batches = 0
    const { admit } = oneCount(async ({ entries }) => {
      batches += 1
      const wanted = entries.map(({ units, runs }) =>
        (runs ?? []).reduce((sum, { unitsEach, requests }) => sum + unitsEach * requests, runs ? 0 : units),
      )
      return wanted.map(granted => ({ granted, before: 0, used: granted }))
    })
    const decisions = await Promise.all(costs.map(units => admit(units)))
    let left = 1_000
    const inOrder = costs.map(units => {
      left -= units
      return { allowed: true, remaining: left }
    })
    t.strictSame(decisions, inOrder, 'in order, each at its own cost')
    t.equal(batches, 1)
  })

t.test('reports and requests are sent one batch at a time', async t => {
  let [inFlight, most] = [0, 0]
  const { admit, partition } = oneCount(async ({ entries }) => {
    inFlight += 1
    most = Math.max(most, inFlight)
    for (let i = 0; i < 5; i++) await turn()
    inFlight -= 1
    return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
  })
  partition.onMessagesLost()
  await Promise.all([partition.probe(), admit()])
  t.equal(most, 1)
})

t.test('a count is published at steps of its present limit', async t => {
  const steps: number[] = []
  const { partition } = oneCount(async ({ entries }) => {
    for (const { step } of entries) steps.push(step)
    return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
  })
  const count = newCount('key_2')
  for (const limit of [6_400, 640])
    await new Promise<unknown>(resolve =>
      partition.consume(count, limit, 1, (_, decision) => resolve(decision)),
    )
  t.strictSame(steps, [100, 10])
})

t.test('a count is kept while requests wait for it, and until the store has all of it', async t => {
  const [asked, idle] = [newCount('key_1'), newCount('key_2')]
  const reply = Promise.withResolvers<void>()
  const { partition } = oneCount(
    async ({ entries }) => {
      await reply.promise
      return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
    },
    { whenStoreIsDown: 'refuse' },
  )
  const kept = () => [asked, idle].map(count => !partition.mayForget(count))
  const decided = new Promise<unknown>(resolve =>
    partition.consume(asked, 1_000, 1, (_, decision) => resolve(decision)),
  )
  t.strictSame(kept(), [true, false], 'before its batch')
  for (let i = 0; i < 5; i++) await turn()
  t.strictSame(kept(), [true, false], 'with its batch')
  reply.resolve()
  await decided
  t.strictSame(kept(), [false, false])
  partition.onMessagesLost()
  t.strictSame(kept(), [true, true], 'the store may have lost counts')
})
