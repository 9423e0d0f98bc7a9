// The demand for each key: when it was last requested, by whom and how often, with a half-life of half an hour. Bounded; drops the
// keys that were not requested for longest.

import { LRUCache } from 'lru-cache'

const halfLifeMs = 30 * 60_000
const mostKeys = 50_000

type Demanded<Subject> = {
  readonly subject: Subject
  readonly lastRequestedAt: number
  /** The decayed count of requests. */
  readonly score: number
  /** Who requested it last; undefined where nobody in particular did. */
  readonly consumer: string | undefined
}

export type Demand<Subject> = {
  /** @param now ms since the epoch */
  record(key: string, subject: Subject, now: number, consumer?: string | undefined): void
  of(key: string): Demanded<Subject> | undefined
  /** The decayed count of a key's requests at an instant; 0 without any. */
  scoreOf(key: string, now: number): number
  latest(): Demanded<Subject> | undefined
  /** The consumers that requested something last, at or after an instant: at most two. */
  recentConsumers(instant: number): string[]
  /** All keys requested at or after an instant. */
  since(instant: number): [key: string, demanded: Demanded<Subject>][]
}

export const createDemand = <Subject>(): Demand<Subject> => {
  type Mutable = { -readonly [Name in keyof Demanded<Subject>]: Demanded<Subject>[Name] }
  // By size, because lru-cache allocates `max` entries at once.
  const records = new LRUCache<string, Mutable>({ maxSize: mostKeys, sizeCalculation: () => 1 })
  let [lastConsumer, otherConsumer] = [
    { name: '', at: Number.NEGATIVE_INFINITY },
    { name: '', at: Number.NEGATIVE_INFINITY },
  ]
  // As cheap as a comparison where one consumer requests twice.
  const recordConsumer = (name: string, at: number): void => {
    if (name !== lastConsumer.name) {
      ;[lastConsumer, otherConsumer] = [otherConsumer, lastConsumer]
      lastConsumer.name = name
    }
    lastConsumer.at = at
  }
  return {
    record: (key, subject, now, consumer) => {
      if (consumer !== undefined) recordConsumer(consumer, now)
      const record = records.get(key)
      if (!record) {
        records.set(key, { subject, lastRequestedAt: now, score: 1, consumer })
        return
      }
      if (now > record.lastRequestedAt) record.score *= 2 ** ((record.lastRequestedAt - now) / halfLifeMs)
      record.score += 1
      record.lastRequestedAt = now
      record.consumer = consumer
    },
    of: key => records.peek(key),
    scoreOf: (key, now) => {
      const record = records.peek(key)
      return record ? record.score * 2 ** (Math.min(0, record.lastRequestedAt - now) / halfLifeMs) : 0
    },
    latest: () => {
      for (const record of records.values()) return record
      return undefined
    },
    recentConsumers: instant =>
      [lastConsumer, otherConsumer].filter(({ at }) => at >= instant).map(({ name }) => name),
    since: instant => {
      const found: [string, Mutable][] = []
      // Latest first, so the first one that is too old ends the loop.
      for (const [key, record] of records.entries()) {
        if (record.lastRequestedAt < instant) break
        found.push([key, record])
      }
      return found
    },
  }
}
