// The demand for each key: when it was last requested, by which consumer and how often, with a half-life of half an hour.
// Bounded; drops the keys that were not requested for longest. It has its own linked list, because the iterators of lru-cache
// take most of the time of a pass over the keys in demand.

const halfLifeMs = 30 * 60_000
const maxKeys = 50_000
const orderedToMs = 1_000

export type Demanded<Subject> = {
  readonly key: string
  readonly subject: Subject
  readonly lastRequestedAt: number
  /** The decayed count of requests. */
  readonly score: number
  /** The consumer that requested it last; undefined for none in particular. */
  readonly consumer: string | undefined
}

export type Demand<Subject> = ReturnType<typeof createDemand<Subject>>

const scoreAt = ({ score, lastRequestedAt }: Demanded<unknown>, now: number): number =>
  score * 2 ** (Math.min(0, lastRequestedAt - now) / halfLifeMs)

export const createDemand = <Subject>() => {
  type Requested = { -readonly [Name in keyof Demanded<Subject>]: Demanded<Subject>[Name] } & {
    /** The key that was requested before it. */
    older: Requested | undefined
    newer: Requested | undefined
  }
  const records = new Map<string, Requested>()
  let newest: Requested | undefined
  let oldest: Requested | undefined
  const unlink = ({ older, newer }: Requested): void => {
    if (newer) newer.older = older
    else newest = older
    if (older) older.newer = newer
    else oldest = newer
  }
  const putFirst = (record: Requested): void => {
    record.older = newest
    record.newer = undefined
    if (newest) newest.newer = record
    else oldest = record
    newest = record
  }
  let [lastConsumer, otherConsumer] = [
    { name: '', at: Number.NEGATIVE_INFINITY },
    { name: '', at: Number.NEGATIVE_INFINITY },
  ]
  // The clock was set back: nothing was requested later than now.
  const setBack = (now: number): void => {
    for (let record = newest; record; record = record.older)
      record.lastRequestedAt = Math.min(record.lastRequestedAt, now)
    for (const consumer of [lastConsumer, otherConsumer]) consumer.at = Math.min(consumer.at, now)
  }
  // Costs one comparison where the same consumer requests again.
  const recordConsumer = (name: string, at: number): void => {
    if (name !== lastConsumer.name) {
      ;[lastConsumer, otherConsumer] = [otherConsumer, lastConsumer]
      lastConsumer.name = name
    }
    lastConsumer.at = at
  }
  // The first key that is too old ends the loop.
  const since = (instant: number): Requested[] => {
    const found: Requested[] = []
    for (let record = newest; record && record.lastRequestedAt >= instant; record = record.older)
      found.push(record)
    return found
  }
  return {
    /** @param now ms since the epoch */
    record: (key: string, subject: Subject, now: number, consumer?: string | undefined): void => {
      if (newest !== undefined && newest.lastRequestedAt > now) setBack(now)
      if (consumer !== undefined) recordConsumer(consumer, now)
      const record = records.get(key)
      if (!record) {
        const first = {
          key,
          subject,
          lastRequestedAt: now,
          score: 1,
          consumer,
          older: undefined,
          newer: undefined,
        }
        records.set(key, first)
        putFirst(first)
        if (records.size <= maxKeys || !oldest) return
        records.delete(oldest.key)
        unlink(oldest)
        return
      }
      record.consumer = consumer
      // To the second: of a key that is requested all the time, moving its record would cost more than finding it.
      if (now - record.lastRequestedAt < orderedToMs) {
        record.score += 1
        return
      }
      record.score = 1 + record.score * 2 ** ((record.lastRequestedAt - now) / halfLifeMs)
      record.lastRequestedAt = now
      if (record === newest) return
      unlink(record)
      putFirst(record)
    },
    of: (key: string): Demanded<Subject> | undefined => records.get(key),
    /** Of all records. */
    keys: (): string[] => [...records.keys()],
    /** The decayed count of a key's requests at an instant; 0 without any. */
    scoreOf: (key: string, now: number): number => {
      const record = records.get(key)
      return record ? scoreAt(record, now) : 0
    },
    /** The subjects requested last, at most so many. */
    latest: (most: number): Subject[] => {
      const found: Subject[] = []
      for (let record = newest; record && found.length < most; record = record.older)
        found.push(record.subject)
      return found
    },
    /** The last consumers with a request at or after an instant: at most two. */
    recentConsumers: (instant: number): string[] =>
      [lastConsumer, otherConsumer].filter(({ at }) => at >= instant).map(({ name }) => name),
    /** The keys that were requested at or after an instant, the latest first. */
    since: (instant: number): readonly Demanded<Subject>[] => since(instant),
    /** Of those the ones with the highest decayed counts, highest first, at most so many. */
    most: (most: number, instant: number, now: number): { subject: Subject; score: number }[] => {
      const all = since(instant)
      const scores = new Float64Array(all.length)
      all.forEach((record, i) => {
        scores[i] = scoreAt(record, now)
      })
      // Sorting numbers takes a tenth of sorting the keys by them.
      const least =
        scores.length <= most ? 0 : (scores.toSorted()[scores.length - most] ?? Number.POSITIVE_INFINITY)
      const found: { subject: Subject; score: number }[] = []
      let ties = most
      for (const score of scores) if (score > least) ties -= 1
      all.forEach(({ subject }, i) => {
        const score = scores[i] ?? 0
        if (score > least || (score === least && ties-- > 0)) found.push({ subject, score })
      })
      return found.sort((one, other) => other.score - one.score)
    },
  }
}
