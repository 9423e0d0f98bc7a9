// Bounds the time that low-priority work takes of each turn of the event loop: a task goes on until the share of this turn is
// used up, and is called back in a later turn. Knows nothing of connections.

export type Turns = {
  /** Whether a task may go on now; if not, it is called back in its turn. */
  mayGoOn(task: Task): boolean
  /** Calls a task back in its turn. */
  queue(task: Task): void
  /** Forgets a task. */
  cancel(task: Task): void
}

export type Task = {
  /**
   * Known tasks run first. Then new tasks, the newest first: in a flood, a new task waits for one turn and not for the whole
   * flood. Tasks that have more to do alternate with them, one after the other. Then tasks of low priority.
   */
  priority(): Priority
  run(): void
}

export type Priority = 'known' | 'new' | 'more' | 'low'

// The follow-up work of a task, such as writes, runs between two calls of `setImmediate`, and counts too. So each task has a
// call of its own, and the calls of a turn are scheduled before the first of them runs.
const maxTasksPerTurn = 16

/**
 * @param msPerTurn the time of all tasks together in one turn of the event loop; one task always runs
 * @param now in ms, from any beginning
 */
export const createTurns = (msPerTurn: number, now = () => performance.now()): Turns => {
  const waiting: Record<Priority, Set<Task>> = {
    known: new Set(),
    new: new Set(),
    more: new Set(),
    low: new Set(),
  }
  // In the order of queueing; tasks that do not wait any more are dropped when they are met.
  const newest: Task[] = []
  let endsAt = 0
  let calls = 0
  let isRunning = false
  let isMoreNext = false
  let granted: Task | undefined

  const newestOf = (tasks: ReadonlySet<Task>): Task | undefined => {
    while (newest.length > 0) {
      const task = newest.at(-1)
      if (task && tasks.has(task)) return task
      newest.pop()
    }
    return undefined
  }
  const oldestOf = ([task]: ReadonlySet<Task>): Task | undefined => task
  // Neither a flood of new tasks nor one of those that have more to do keeps the others waiting.
  const newOrMore = (): Task | undefined => {
    const [one, other] = [newestOf(waiting.new), oldestOf(waiting.more)]
    return isMoreNext ? (other ?? one) : (one ?? other)
  }
  const next = (): Task | undefined => oldestOf(waiting.known) ?? newOrMore() ?? oldestOf(waiting.low)
  const size = (): number => waiting.known.size + waiting.new.size + waiting.more.size + waiting.low.size
  const schedule = (wanted: number): void => {
    for (; calls < wanted; calls++) setImmediate(runNext)
  }
  // The first call ends the turn, whether a task waits for it or not. What the last call queues has the next turn.
  const plan = (): void => {
    if (isRunning) return
    if (calls === 0) endsAt = now() + msPerTurn
    schedule(Math.max(1, Math.min(size(), maxTasksPerTurn)))
  }
  const runNext = (): void => {
    const mayRun = !isRunning || now() < endsAt
    isRunning = true
    calls -= 1
    const task = mayRun ? next() : undefined
    if (task) {
      if (waiting.new.has(task)) isMoreNext = true
      else if (waiting.more.has(task)) isMoreNext = false
      cancel(task)
      // The first `mayGoOn` of a task in its turn succeeds.
      granted = task
      task.run()
      granted = undefined
    }
    if (calls > 0) return
    isRunning = false
    if (next()) plan()
  }
  // One that has more to do does it one by one while others wait.
  const isNext = (priority: Priority): boolean => {
    if (priority === 'known') return true
    if (waiting.known.size > 0) return false
    return priority === 'new' || (waiting.new.size === 0 && waiting.more.size === 0)
  }
  const queue = (task: Task): void => {
    cancel(task)
    const priority = task.priority()
    waiting[priority].add(task)
    if (priority === 'new') newest.push(task)
    plan()
  }
  const cancel = (task: Task): void => {
    waiting.known.delete(task)
    waiting.new.delete(task)
    waiting.more.delete(task)
    waiting.low.delete(task)
  }

  return {
    mayGoOn: task => {
      if (calls === 0) plan()
      if (granted === task) {
        granted = undefined
        return true
      }
      const priority = task.priority()
      if (isNext(priority) && now() < endsAt) return true
      queue(task)
      return false
    },
    queue,
    cancel,
  }
}
