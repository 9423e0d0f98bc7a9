// When a probe is sent: once the breaker allows it, one at a time, and only when there is a cell to load.

import t from 'tap'
import { createProbe } from '../../src/cache/refresh-ahead.ts'
import { createGrid } from '../../src/weather/cell.ts'

const dhaka = createGrid(0.1).cellOf(23.71, 90.41)

t.test('a probe is sent when it is due and there is a cell, and none while another is under way', async t => {
  const out: PromiseWithResolvers<void>[] = []
  let isDue = false
  let cell: typeof dhaka | undefined
  const probe = createProbe({
    isDue: () => isDue,
    cell: () => cell,
    load: () => {
      const load = Promise.withResolvers<void>()
      out.push(load)
      return load.promise
    },
  })
  probe()
  isDue = true
  probe()
  t.equal(out.length, 0)
  cell = dhaka
  probe()
  probe()
  t.equal(out.length, 1)
  out[0]?.resolve()
  await out[0]?.promise
  await new Promise(resolve => setImmediate(resolve))
  probe()
  t.equal(out.length, 1, 'a probe that changed nothing is not repeated at each tick')
})
