// Fair sharing of the event loop: who continues, who waits, and in which order.

import t from 'tap'
import { createTurns, type Priority, type Task, type Turns } from '../../src/edge/connection/turns.ts'

const turn = () => new Promise(resolve => setImmediate(resolve))
// A manual clock for the turns.
let instant = 0
const busy = (ms: number) => {
  instant += ms
}
const turnsOf = (ms: number) => createTurns(ms, () => instant)
const task = (name: string, ran: string[], priority: Priority, work = () => {}): Task => ({
  priority: () => priority,
  run: () => {
    ran.push(name)
    work()
  },
})
/** Uses up the share of this turn. */
const useUp = (turns: Turns) => {
  turns.mayGoOn(task('first', [], 'known'))
  busy(2)
}

t.test('a task goes on until the share is used up, and is called back in the next turn', async t => {
  const turns = turnsOf(1)
  const ran: string[] = []
  const one = task('one', ran, 'known')
  t.ok(turns.mayGoOn(one))
  busy(2)
  t.notOk(turns.mayGoOn(one))
  t.strictSame(ran, [])
  await turn()
  t.strictSame(ran, ['one'])
})

t.test('known tasks come first, then new ones from the newest on, then those that can wait', async t => {
  const turns = turnsOf(1_000)
  const ran: string[] = []
  useUp(turns)
  for (const [name, priority] of [
    ['low 1', 'low'],
    ['new 1', 'new'],
    ['new 2', 'new'],
    ['known 1', 'known'],
    ['low 2', 'low'],
    ['known 2', 'known'],
    ['new 3', 'new'],
  ] as const)
    turns.queue(task(name, ran, priority))
  await turn()
  t.strictSame(ran, ['known 1', 'known 2', 'new 3', 'new 2', 'new 1', 'low 1', 'low 2'])
})

t.test('new tasks and those that have more to do alternate', async t => {
  const turns = turnsOf(1_000)
  const ran: string[] = []
  useUp(turns)
  for (const name of ['more 1', 'more 2', 'more 3']) turns.queue(task(name, ran, 'more'))
  for (const name of ['new 1', 'new 2']) turns.queue(task(name, ran, 'new'))
  turns.queue(task('low', ran, 'low'))
  await turn()
  t.strictSame(ran, ['new 2', 'more 1', 'new 1', 'more 2', 'more 3', 'low'])
})

t.test('one that has more to do goes on alone, and does one thing at a time beside others', async t => {
  const turns = turnsOf(1_000)
  const steps: string[] = []
  const greedy = (name: string): Task => {
    let left = 2
    const self: Task = {
      priority: () => 'more',
      run: () => {
        while (left > 0 && turns.mayGoOn(self)) {
          left -= 1
          steps.push(name)
        }
      },
    }
    return self
  }
  useUp(turns)
  for (const name of ['a', 'b']) turns.queue(greedy(name))
  for (let i = 0; i < 10 && steps.length < 4; i++) await turn()
  t.strictSame(steps.slice(0, 2), ['a', 'b'])
  t.equal(steps.length, 4)
})

t.test('a task that is called back goes on for what is left of its turn, and not for longer', async t => {
  const turns = turnsOf(1)
  useUp(turns)
  let steps = 0
  const greedy: Task = {
    priority: () => 'known',
    run: () => {
      while (turns.mayGoOn(greedy)) {
        steps += 1
        busy(0.4)
      }
    },
  }
  turns.queue(greedy)
  await turn()
  t.equal(steps, 1, 'the turn of the call was used up before')
  await turn()
  t.equal(steps, 4, 'three steps fill a turn')
  turns.cancel(greedy)
})

t.test('nobody overtakes those who have waited longer', async t => {
  const turns = turnsOf(1_000)
  const ran: string[] = []
  turns.queue(task('known', ran, 'known'))
  t.notOk(turns.mayGoOn(task('new', ran, 'new')))
  t.notOk(turns.mayGoOn(task('low', ran, 'low')))
  t.ok(turns.mayGoOn(task('another', ran, 'known')))
  await turn()
  t.strictSame(ran, ['known', 'new', 'low'])
})

t.test('one task a turn has its turn however long they take, and may go on in it', async t => {
  const turns = turnsOf(1)
  const ran: string[] = []
  const went: boolean[] = []
  const slow = (name: string): Task => {
    const self: Task = task(name, ran, 'low', () => {
      busy(2)
      went.push(turns.mayGoOn(self))
    })
    return self
  }
  for (const name of ['a', 'b', 'c']) turns.queue(slow(name))
  for (let i = 0; i < 10 && ran.length < 3; i++) {
    const before = ran.length
    await turn()
    t.ok(ran.length - before <= 1, 'one of them a turn')
  }
  t.strictSame(ran, ['a', 'b', 'c'])
  t.strictSame(went, [true, true, true])
})

t.test('a task that was cancelled is not called, and one queued twice is called once', async t => {
  const turns = turnsOf(1_000)
  const ran: string[] = []
  const [gone, twice] = [task('gone', ran, 'new'), task('twice', ran, 'new')]
  turns.queue(gone)
  turns.queue(twice)
  turns.queue(twice)
  turns.cancel(gone)
  await turn()
  await turn()
  t.strictSame(ran, ['twice'])
})
