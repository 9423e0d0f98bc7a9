// The demand for each key: when it was last asked for and how often, with a half-life of half an hour. Bounded; drops the
// keys that nobody has asked for longest.

import { LRUCache } from 'lru-cache'

const halfLifeMs = 30 * 60_000
const mostKeys = 50_000

type Asked<Subject> = {
  readonly subject: Subject
  readonly lastAskedAt: number
  /** The decayed count of requests. */
  readonly score: number
}

export type Demand<Subject> = {
  /** @param now ms since the epoch */
  ask(key: string, subject: Subject, now: number): void
  of(key: string): Asked<Subject> | undefined
  latest(): Asked<Subject> | undefined
  /** Everything asked for at or after an instant. */
  since(instant: number): [key: string, asked: Asked<Subject>][]
}

export const createDemand = <Subject>(): Demand<Subject> => {
  type Record = { -readonly [Name in keyof Asked<Subject>]: Asked<Subject>[Name] }
  // By size, because lru-cache allocates `max` entries at once.
  const records = new LRUCache<string, Record>({ maxSize: mostKeys, sizeCalculation: () => 1 })
  return {
    ask: (key, subject, now) => {
      const record = records.get(key)
      if (!record) {
        records.set(key, { subject, lastAskedAt: now, score: 1 })
        return
      }
      if (now > record.lastAskedAt) record.score *= 2 ** ((record.lastAskedAt - now) / halfLifeMs)
      record.score += 1
      record.lastAskedAt = now
    },
    of: key => records.peek(key),
    latest: () => {
      for (const record of records.values()) return record
      return undefined
    },
    since: instant => {
      const found: [string, Record][] = []
      // Latest first, so the first one that is too old ends the loop.
      for (const [key, record] of records.entries()) {
        if (record.lastAskedAt < instant) break
        found.push([key, record])
      }
      return found
    },
  }
}
