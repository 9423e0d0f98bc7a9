// Without it operators could blame the wrong key for the provider's budget.

import t from 'tap'
import { createLoadsByKey } from '../../src/keys/loads-by-key.ts'
import { manualClock } from '../support/manual-clock.ts'

const open = (limitOfDay: () => number | undefined = () => 1_200) => {
  const clock = manualClock('2026-11-22T23:59:59.999Z')
  const stored: string[] = []
  const countLoad = (keyId: string) => void stored.push(keyId)
  return {
    ...{ clock, stored },
    loads: createLoadsByKey({ now: clock.now, weightPerCell: () => 3, limitOfDay, countLoad }),
  }
}

t.test('counts cells of each key, and what they weigh of the limit of the day', async t => {
  const { loads, clock, stored } = open()
  clock.set('2026-11-22T00:00:00Z')
  t.strictSame([loads.all(), loads.topShare()], [[], 0])
  for (let i = 0; i < 100; i += 1) loads.record('key_greedy')
  clock.set('2026-11-22T23:59:59.999Z')
  loads.record('key_other')
  t.strictSame([stored.length, stored.at(-1)], [101, 'key_other'], 'each is counted in the store too')
  t.strictSame(loads.all(), [
    { keyId: 'key_other', cells: 1, share: 0.0025 },
    { keyId: 'key_greedy', cells: 100, share: 0.25 },
  ])
  t.equal(loads.topShare(), 0.25)
})

t.test('begins anew at midnight UTC, for whoever looks first', async t => {
  for (const look of ['all', 'topShare'] as const) {
    const { loads, clock } = open()
    loads.record('key_1')
    clock.advance(1)
    t.strictSame(loads[look](), { all: [], topShare: 0 }[look], look)
    loads.record('key_1')
    t.hasStrict(loads.all(), [{ keyId: 'key_1', cells: 1 }])
  }
})

t.test('a share is null without a limit of the day, and 1 above one that was lowered', async t => {
  const { loads } = open(() => undefined)
  loads.record('key_1')
  t.strictSame(loads.all(), [{ keyId: 'key_1', cells: 1, share: null }])
  t.equal(loads.topShare(), null)
  const lowered = open(() => 1).loads
  lowered.record('key_1')
  t.equal(lowered.topShare(), 1)
})

t.test('holds 10,000 keys, and forgets the one that loaded nothing for longest', async t => {
  const { loads } = open()
  loads.record('key_gone')
  for (let i = 0; i < 12_000; i += 1) {
    loads.record(`key_${i}`)
    loads.record('key_greedy')
  }
  const all = loads.all()
  t.equal(all.length, 10_000)
  t.notOk(all.some(({ keyId }) => keyId === 'key_gone'))
  t.equal(all.find(({ keyId }) => keyId === 'key_greedy')?.cells, 12_000)
})
