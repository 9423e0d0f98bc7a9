// How often a batch is sent that had no reply: again where the server of its counts answers, once where it does not.

import t from 'tap'
import { StoreError } from '../../src/stores/store.ts'
import { oneCount } from './one-count.ts'

/** A store in which so many batches have no reply. */
const losing = (batches: number, usedOn: () => Promise<[]>) => {
  let sent = 0
  const { admit, partition } = oneCount({
    commit: async ({ entries }) => {
      sent += 1
      if (sent <= batches) throw new StoreError('it did not answer within 500 ms')
      return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
    },
    usedOn,
    // Another server, in a cluster.
    usageMessagesArrive: () => true,
    time: async () => 0,
  })
  return { admit, state: partition.state, sent: () => sent }
}

t.test('a batch without a reply is sent again while the server of its counts answers', async t => {
  const { admit, sent, state } = losing(2, async () => [])
  t.strictSame(await admit(), { allowed: true, remaining: 999 })
  t.equal(sent(), 3)
  t.equal(state(), 'counting')
})

t.test('it is sent three times at most', async t => {
  const { admit, sent, state } = losing(3, async () => [])
  await t.rejects(admit(), { name: 'StoreError' })
  t.equal(sent(), 3)
  t.equal(state(), 'away')
})

for (const [how, usedOn] of [
  ['hangs', () => new Promise<[]>(() => {})],
  ['fails', () => Promise.reject(new StoreError('away'))],
] as const)
  t.test(`it is sent once where that server ${how}, although others answer`, async t => {
    const { admit, sent, state } = losing(1, usedOn)
    await t.rejects(admit(), { name: 'StoreError' })
    t.equal(sent(), 1)
    t.equal(state(), 'away')
  })
