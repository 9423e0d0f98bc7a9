// Without it a gateway would keep a lease of every cell that failed to load in a long outage of the provider.

import t from 'tap'
import { createLeases } from '../../src/stores/sqlite/leases.ts'

t.test('leases that have ended do not stay, whoever asks for others', async t => {
  let now = 0
  const leases = createLeases(() => now)
  for (let i = 0; i < 10_000; i++) {
    await leases.acquireLease(`cell_${i}`, 'one', 60_000)
    await leases.releaseLease(`cell_${i}`, 'one', '{"code":"down"}')
    now += 1
  }
  // A failure is known for half a second, and each of them is a lease and a failure.
  t.ok(leases.size() <= 1_000, `${leases.size()} are kept`)
  t.match(
    await leases.acquireLease('cell_9999', 'other', 60_000),
    { failure: /down/ },
    'the others are there',
  )
})
