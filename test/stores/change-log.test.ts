// Without it a lost or restarted change log would hide revoked keys and purges from a gateway.

import t, { type Test } from 'tap'
import { appendToLog, followLog } from '../../src/stores/change-log.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { type ChangeTopic, StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'

const setUp = (t: Test) => {
  const clock = manualClock('2026-11-21T06:00:00Z')
  const open = () => {
    const store = openEmbeddedStore(':memory:', clock)
    t.teardown(() => store.close())
    return store
  }
  let store = open()
  const state = { isAway: false, failsOnceBegun: false, reads: 0, failures: 0, losses: 0 }
  const heard: [texts: string[], isWhole: boolean, isFirst: boolean][] = []
  const read = followLog(
    {
      changeRecordsAfter: async (topic: ChangeTopic, number: number) => {
        state.reads += 1
        if (state.isAway) throw new StoreError('not reached')
        return store.changeRecordsAfter(topic, number)
      },
      appendChangeRecord: (...given) => {
        state.isAway ||= state.failsOnceBegun
        return store.appendChangeRecord(...given)
      },
    },
    'purges',
    {
      begin: 'begin',
      apply: ({ records, isWhole }, isFirst) => {
        heard.push([records.map(({ text }) => text), isWhole, isFirst])
      },
      onLost: () => {
        state.losses += 1
      },
      onFailure: () => {
        state.failures += 1
      },
    },
    clock,
  )
  const append = (text: string) => appendToLog(store, 'purges', text, clock.now())
  const lose = () => {
    store = open()
  }
  return { state, read, append, lose, heard: () => heard.splice(0) }
}

t.test('a log without a record begins, and then each record is heard once', async t => {
  const { read, append, heard } = setUp(t)
  await read()
  t.strictSame(heard(), [[['begin'], false, true]])
  await append('a')
  await append('b')
  await read()
  await read()
  t.strictSame(heard(), [
    [['a', 'b'], true, false],
    [[], true, false],
  ])
})

t.test('a log that is lost begins again, with higher numbers, and is not whole', async t => {
  const { state, read, append, lose, heard } = setUp(t)
  for (const text of ['a', 'b', 'c']) await append(text)
  await read()
  heard()
  lose()
  await read()
  t.strictSame([heard(), state.losses], [[[['begin'], false, false]], 1])
  t.equal(await append('d'), 5)
  await read()
  t.strictSame(heard(), [[['d'], true, false]])
})

t.test('a log that begins again while the store goes away is no first one afterwards', async t => {
  const { state, read, append, lose, heard } = setUp(t)
  await append('a')
  await read()
  heard()
  lose()
  state.failsOnceBegun = true
  await read()
  t.strictSame([heard(), state.losses, state.failures], [[], 1, 1])
  ;[state.isAway, state.failsOnceBegun] = [false, false]
  await read()
  t.strictSame(heard(), [[['begin'], false, false]])
})

t.test('a read during another one comes after it, and is shared; a failure ends none', async t => {
  const { state, read, append, heard } = setUp(t)
  await append('a')
  const first = read()
  const [second, third] = [read(), read()]
  await append('b')
  await Promise.all([first, second, third])
  t.strictSame([state.reads, heard().flatMap(([texts]) => texts)], [2, ['a', 'b']])
  state.isAway = true
  await read()
  state.isAway = false
  await append('c')
  await read()
  t.strictSame([state.failures, heard()], [1, [[['c'], true, false]]])
})
