// Which connections without a good key are read, wait or are closed: those of a flood go one in each turn, so that nobody else
// waits for all of them.

import t from 'tap'
import type { Tracked } from '../../src/edge/connection/connection.ts'
import type { Task } from '../../src/edge/connection/turns.ts'
import { createUnauthenticated } from '../../src/edge/connection/unauthenticated.ts'

const max = 4

/** A client that sends nothing. */
const silent = (): Tracked =>
  ({ isBegun: false, begunAfter: 0, http: { readableLength: 0 }, requests: 0 }) as unknown as Tracked

const open = () => {
  const closed: Tracked[] = []
  const queue: Task[] = []
  const unauthenticated = createUnauthenticated({
    max: () => max,
    admit: connection => queue.push({ priority: () => 'new', run: () => begin(connection) }),
    close: connection => {
      if (!connection) return
      closed.push(connection)
      unauthenticated.remove(connection)
    },
    queue: task => queue.push(task),
  })
  const begin = (connection: Tracked): void => {
    if (unauthenticated.makeRoom()) unauthenticated.begin(connection)
  }
  const arrive = (many: number): Tracked[] =>
    Array.from({ length: many }, () => {
      const connection = silent()
      unauthenticated.add(connection)
      return connection
    })
  return { unauthenticated, closed, queue, begin, arrive }
}

t.test('silent connections make room for those that wait, one in each turn', async t => {
  const { unauthenticated, closed, queue, begin, arrive } = open()
  const first = arrive(max)
  for (const connection of first) begin(connection)
  const others = arrive(max)
  for (let i = 0; i < 2; i++) unauthenticated.tick()
  queue.length = 0
  unauthenticated.tick()
  t.equal(closed.length, 0, 'none by the tick itself')
  for (let turn = 0; queue.length > 0; turn++) {
    const before = closed.length
    t.ok(turn < 100)
    queue.shift()?.run()
    t.ok(closed.length - before <= 1, 'at most one in a turn')
  }
  t.strictSame(new Set(closed), new Set(first))
  t.ok(others.every(({ isBegun }) => isBegun))
})

t.test('a connection is admitted once, however many are closed meanwhile', async t => {
  const { unauthenticated, queue, begin, arrive } = open()
  for (const connection of arrive(max)) begin(connection)
  arrive(2 * max)
  for (let i = 0; i < 3; i++) unauthenticated.tick()
  queue.length = 0
  unauthenticated.tick()
  let ran = 0
  for (; queue.length > 0; ran++) queue.shift()?.run()
  // Each of the four that are closed, the four that come in their places, and the turn that finds nothing to do.
  t.ok(ran <= 2 * max + 1, `${ran} turns`)
})
