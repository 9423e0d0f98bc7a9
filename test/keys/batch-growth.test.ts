// How long a batch waits for more requests: as long as turns of the event loop bring some, within bounds of turns and of time.

import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { oneCount } from './one-count.ts'

/** The units of the first batch where each turn brings one more request and takes so long. */
const unitsOfFirst = async (turnMs: number): Promise<number | undefined> => {
  let now = 0
  let first: number | undefined
  const { admit } = oneCount(
    {
      commit: async ({ entries }) => {
        first ??= entries[0]?.units
        return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
      },
      usedOn: async () => [],
      usageMessagesArrive: () => true,
      time: async () => 0,
    },
    () => now,
  )
  const admitted: Promise<unknown>[] = []
  for (let turns = 0; first === undefined && turns < 100; turns++) {
    admitted.push(admit())
    await turn()
    now += turnMs
  }
  await Promise.all(admitted)
  return first
}

t.test('a batch grows for sixteen turns while each brings more', async t => {
  t.equal(await unitsOfFirst(0), 16)
})

t.test('it grows for a millisecond at most, however few the turns', async t => {
  const units = (await unitsOfFirst(0.4)) ?? 0
  t.ok(units > 1 && units <= 4, `${units} units`)
  t.equal(await unitsOfFirst(5), 2, 'long turns bring those of the next one at most')
})
