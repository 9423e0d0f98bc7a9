// Without it a queued cell could be lost, or one key could delay the cells of all others.

import fc from 'fast-check'
import t from 'tap'
import { Queue, type Waiting } from '../../src/provider/queue.ts'
import { createGrid } from '../../src/weather/cell.ts'

const grid = createGrid(0.1)
const cell = (number: number) => grid.cellOf(20 + Math.floor(number / 50) / 10, 88 + (number % 50) / 10)
const namesOf = (taken: readonly Waiting[]) => taken.map(({ cell: { id }, consumer }) => `${consumer} ${id}`)
const add = (queue: Queue, numbers: readonly number[], consumer: string | undefined) => {
  for (const number of numbers) queue.add(cell(number), 'cold', consumer, number)
}
const name = (consumer: string | undefined, number: number) => `${consumer} ${cell(number).id}`

t.test('consumers are taken in turn, whoever came first and with how many cells', async t => {
  const queue = new Queue()
  add(queue, [1, 2, 3, 4], 'many')
  add(queue, [5], 'one')
  add(queue, [6], undefined)
  t.strictSame(namesOf(queue.take(4)), [name('many', 1), name('one', 5), name(undefined, 6), name('many', 2)])
  add(queue, [7], 'late')
  t.strictSame(namesOf(queue.take(2)), [name('many', 3), name('late', 7)], 'one of each in a round')
  add(queue, [8, 9], 'other')
  t.strictSame(namesOf(queue.take(1)), [name('many', 4)])
  t.strictSame(namesOf(queue.take(9)), [name('other', 8), name('other', 9)])
  t.equal(queue.size, 0)
})

t.test('of a consumer only so many are taken, and of one that is held back none', async t => {
  const queue = new Queue()
  add(queue, [1, 2, 3, 4], 'many')
  add(queue, [5, 6], 'held')
  const most = (consumer: string | undefined) => (consumer === 'held' ? 0 : 2)
  t.strictSame(namesOf(queue.take(10, most)), [name('many', 1), name('many', 2)])
  t.equal(queue.size, 4)
  t.ok(queue.hasOther('many'))
  t.strictSame(
    namesOf(queue.take(10)).toSorted(),
    [name('many', 3), name('many', 4), name('held', 5), name('held', 6)].toSorted(),
  )
  t.notOk(queue.hasOther('many'))
  add(queue, [7], 'many')
  add(queue, [8], undefined)
  t.notOk(queue.hasOther('many'), 'a cell for nobody in particular is for no other')
  add(queue, [9], 'held')
  queue.takeBefore(99, 'held', 'cold')
  t.notOk(queue.hasOther('many'))
})

t.test(
  'what is put back is first again in its order, and what has waited for too long is removed',
  async t => {
    const queue = new Queue()
    add(queue, [1, 2, 3, 30], 'a')
    const taken = queue.take(2)
    add(queue, [4], 'a')
    add(queue, [5], 'other')
    queue.putBack(taken)
    t.equal(queue.size, 6)
    t.strictSame(namesOf(queue.takeBefore(3, 'a', 'cold')), [name('a', 1), name('a', 2)])
    t.strictSame(namesOf(queue.takeBefore(9, 'nobody', 'cold')), [])
    const left = namesOf(queue.take(9))
    t.strictSame(left, [name('a', 3), name('other', 5), name('a', 30), name('a', 4)])
  },
)

t.test('a cell that was queued again before it is put back is loaded once, for both', async t => {
  const queue = new Queue()
  const older = queue.add(cell(1), 'cold', 'a', 1)
  t.strictSame(queue.take(1), [older])
  const newer = queue.add(cell(1), 'refresh', 'b', 2)
  queue.putBack([older])
  t.equal(queue.size, 1)
  t.strictSame(queue.take(2), [newer])
  t.hasStrict(newer, { urgency: 'cold', queuedAt: 1 }, 'as urgent as either')
  t.equal(queue.size, 0)
  newer.reject(new Error('it failed'))
  await t.rejects(older.promise, { message: 'it failed' })
})

t.test('a cell that was queued again waits in the place of the one that is put back', async t => {
  const queue = new Queue()
  const older = [1, 2, 3].map(number => queue.add(cell(number), number < 3 ? 'cold' : 'refresh', 'a', number))
  t.strictSame(queue.take(3), older)
  for (const one of older.slice(0, 2)) one.refusedAt = 5
  queue.add(cell(4), 'cold', 'a', 6)
  const newer = [1, 2, 3].map(number => queue.add(cell(number), number === 1 ? 'refresh' : 'cold', 'a', 7))
  queue.putBack(older)
  t.strictSame(queue.takeBefore(6, 'a', 'cold'), newer.slice(0, 2), 'since as long')
  t.match(newer[1], { queuedAt: 2, refusedAt: 5 })
  t.strictSame(namesOf(queue.take(9)), [name('a', 4), name('a', 3)])
  t.match(newer[2], { queuedAt: 7 }, 'one that is more urgent has not waited so before')
})

t.test('a cell that two want is for the one with the shorter queue, and for the more urgent', async t => {
  const queue = new Queue()
  add(queue, [1, 2, 3, 4], 'many')
  const first = queue.add(cell(4), 'cold', 'few', 9)
  t.equal(queue.size, 4, 'it is queued once')
  t.equal(first.consumer, 'few')
  queue.expedite(cell(3), 'few', 9)
  t.strictSame(namesOf(queue.take(2)), [name('many', 1), name('few', 4)])
  queue.add(cell(8), 'refresh_ahead', 'many', 9)
  queue.expedite(cell(8), 'few', 12)
  const left = queue.take(9)
  t.strictSame(namesOf(left), [name('many', 2), name('few', 3), name('many', 8)])
  t.strictSame(
    left.map(({ queuedAt }) => queuedAt),
    [2, 3, 12],
    'it waits since it is urgent',
  )
})

t.test('a queued cell changes to another consumer only where its turn comes sooner', async t => {
  for (const [cold, number, urgency, by, expected] of [
    [[1], 1, 'cold', 'few', 'many'],
    [[1, 2], 2, 'cold', 'few', 'few'],
    [[1, 2], 2, 'cold', undefined, 'many'],
    [[], 3, 'refresh', 'few', 'many'],
    [[1], 3, 'refresh', 'few', 'few'],
  ] as const) {
    const queue = new Queue()
    add(queue, cold, 'many')
    const waiting = queue.add(cell(number), urgency, 'many', 5)
    t.equal(queue.add(cell(number), 'cold', by, 9), waiting)
    t.hasStrict(waiting, { consumer: expected, urgency: 'cold' }, `${cold.length} ${urgency} ${by}`)
  }
})

t.test('whatever happens, each cell is there once, and none is lost', async () => {
  const step = fc.record({
    what: fc.constantFrom('add', 'take', 'putBack', 'expedite', 'takeBefore'),
    number: fc.nat(12),
    consumer: fc.constantFrom('a', 'b', 'c', undefined),
    urgency: fc.constantFrom('cold' as const, 'refresh' as const, 'refresh_ahead' as const),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), steps => {
      const queue = new Queue()
      const expected = new Set<string>()
      let out: Waiting[][] = []
      const remove = (taken: readonly Waiting[]) => {
        for (const {
          cell: { id },
        } of taken)
          if (!expected.delete(id)) throw new Error(`${id} was not queued`)
      }
      for (const [now, { what, number, consumer, urgency }] of steps.entries())
        if (what === 'add') {
          queue.add(cell(number), urgency, consumer, now)
          expected.add(cell(number).id)
        } else if (what === 'take') {
          const taken = queue.take(1 + (number % 4), of => (of === 'c' ? 1 : 3))
          remove(taken)
          out.push(taken)
        } else if (what === 'putBack') {
          for (const taken of out) queue.putBack(taken)
          for (const waiting of out.flat()) expected.add(waiting.cell.id)
          out = []
        } else if (what === 'expedite') queue.expedite(cell(number), consumer, now)
        else if (consumer !== undefined) remove(queue.takeBefore(now - 3, consumer, urgency))
      if (queue.size !== expected.size) throw new Error(`${queue.size} are queued, and not ${expected.size}`)
      remove(queue.take(Number.POSITIVE_INFINITY))
      if (expected.size > 0 || queue.size > 0) throw new Error('some are lost')
    }),
    { numRuns: 2_000 },
  )
})
