// The connections on which no good key came yet: how many are read at once, which may begin when there is room, and which is
// closed when there is none. How they are read is for connections.ts.

import type { Tracked } from './connection.ts'
import type { Task } from './turns.ts'

export type Unauthenticated = {
  /** A connection was accepted; it waits until `begin`. */
  add(connection: Tracked): void
  /** Closes a waiting connection where too many wait. */
  boundWaiting(): void
  /** Whether one more may be read; where there are too many, closes another one for it. */
  makeRoom(): boolean
  /** Its reading begins. */
  begin(connection: Tracked): void
  /** Its client misbehaves: it is closed before others. */
  suspect(connection: Tracked): void
  /** It has shown a good key, or is closed: others may begin. */
  remove(connection: Tracked): void
  /** Those that are read. */
  begun(): Iterable<Tracked>
  /** Begins to close connections for those that wait. Called at intervals. */
  tick(): void
  count(): number
}

export type UnauthenticatedParts = {
  readonly max: () => number
  /** Begins to read a waiting connection. */
  readonly admit: (connection: Tracked) => void
  readonly close: (connection: Tracked | undefined) => void
  /** Calls a task back in its turn. */
  readonly queue: (task: Task) => void
}

// A connection this young may be about to send its key. By ticks and not by time: between two of them the event loop has
// read what there was, however busy the machine.
const youngTicks = 1
// A wave of clients that start together waits for room. Nothing is read of them, so that each costs some 4 KiB.
const maxWaiting = 1_000

export const createUnauthenticated = ({
  max,
  admit,
  close,
  queue,
}: UnauthenticatedParts): Unauthenticated => {
  // The oldest first: not read yet, read without a fault so far, or read with one.
  const waiting = new Set<Tracked>()
  const unknown = new Set<Tracked>()
  const suspects = new Set<Tracked>()
  // Of the waiting ones, those that were admitted since the last tick and have not begun.
  const admitted = new Set<Tracked>()
  let ticks = 0
  let isOldestNext = false

  const room = () => max() - unknown.size - suspects.size
  const leastWanted = () => firstOf(suspects) ?? oldestSilent()
  // Unread bytes, or a request that is being decided, may have a good key.
  const oldestSilent = (): Tracked | undefined => {
    for (const connection of unknown) {
      if (ticks - connection.begunAfter <= youngTicks) return undefined
      const { http, requests, http2 } = connection
      if (!requests && http.readableLength === 0 && !http2?.waiting) return connection
    }
    return undefined
  }
  // The newest and the oldest in turn: the newest alone would be those of a flood that comes again whenever it is closed.
  const admitWaiting = (): void => {
    let left = room() - admitted.size
    if (left <= 0 || waiting.size === admitted.size) return
    const candidates = [...waiting].filter(each => !admitted.has(each))
    for (; left > 0 && candidates.length > 0; left--) {
      const connection = (isOldestNext ? candidates.shift() : candidates.pop()) as Tracked
      isOldestNext = !isOldestNext
      admitted.add(connection)
      admit(connection)
    }
  }
  const noLongerWaits = (connection: Tracked): void => {
    waiting.delete(connection)
    admitted.delete(connection)
  }
  // One in each turn: to close all of them at once would hold up everybody else for tens of milliseconds.
  const closing: Task = {
    priority: () => 'known',
    run: () => {
      const connection = waiting.size > room() ? leastWanted() : undefined
      if (!connection) return
      close(connection)
      queue(closing)
    },
  }

  return {
    add: connection => {
      waiting.add(connection)
    },
    // The newest is admitted first, and the oldest would be the last.
    boundWaiting: () => {
      if (waiting.size > maxWaiting) close(firstOf(waiting))
    },
    makeRoom: () => {
      if (room() <= 0) close(leastWanted())
      return room() > 0
    },
    begin: connection => {
      connection.isBegun = true
      connection.begunAfter = ticks
      noLongerWaits(connection)
      // In the order in which they had their chance.
      unknown.delete(connection)
      unknown.add(connection)
    },
    suspect: connection => {
      if (connection.isSuspect) return
      connection.isSuspect = true
      noLongerWaits(connection)
      unknown.delete(connection)
      suspects.add(connection)
      if (room() < 0) close(firstOf(suspects))
    },
    remove: connection => {
      noLongerWaits(connection)
      unknown.delete(connection)
      suspects.delete(connection)
      admitWaiting()
    },
    *begun() {
      yield* unknown
      yield* suspects
    },
    tick: () => {
      ticks += 1
      admitted.clear()
      queue(closing)
      admitWaiting()
    },
    count: () => waiting.size + unknown.size + suspects.size,
  }
}

const firstOf = <Item>([item]: ReadonlySet<Item>): Item | undefined => item
