// The connections on which no good key came yet: how many are read at once, which may begin when there is room, and which is
// closed when there is none. How they are read is for connections.ts.

import type { Tracked } from './connection.ts'

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
  /** Closes connections for those that wait. Called at intervals. */
  tick(): void
  count(): number
}

export type UnauthenticatedParts = {
  readonly max: () => number
  /** Begins to read a waiting connection. */
  readonly admit: (connection: Tracked) => void
  readonly close: (connection: Tracked | undefined) => void
}

// A connection this young may be about to send its key. By ticks and not by time: between two of them the event loop has
// read what there was, however busy the machine.
const youngTicks = 1
// A wave of clients that start together waits for room. Nothing is read of them, so that each costs some 4 KiB.
const maxWaiting = 1_000

export const createUnauthenticated = ({ max, admit, close }: UnauthenticatedParts): Unauthenticated => {
  // The oldest first: not read yet, read without a fault so far, or read with one.
  const waiting = new Set<Tracked>()
  const unknown = new Set<Tracked>()
  const suspects = new Set<Tracked>()
  let ticks = 0

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
  // The newest first, as in turns.
  const admitWaiting = (): void => {
    if (waiting.size === 0 || room() <= 0) return
    for (const connection of [...waiting].slice(-room()).reverse()) admit(connection)
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
      waiting.delete(connection)
      // In the order in which they had their chance.
      unknown.delete(connection)
      unknown.add(connection)
    },
    suspect: connection => {
      if (connection.isSuspect) return
      connection.isSuspect = true
      waiting.delete(connection)
      unknown.delete(connection)
      suspects.add(connection)
      if (room() < 0) close(firstOf(suspects))
    },
    remove: connection => {
      waiting.delete(connection)
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
      for (let i = waiting.size - room(); i > 0; i--) close(leastWanted())
      admitWaiting()
    },
    count: () => waiting.size + unknown.size + suspects.size,
  }
}

const firstOf = <Item>([item]: ReadonlySet<Item>): Item | undefined => item
