// The two consumers that asked for weather last, so that it is known whether somebody beside the one that loads is there. Kept
// as cheap as a comparison, because every read records its consumer.

// As long as people wait between two looks at the weather.
const recentForMs = 3_600_000

export type RecentConsumers = {
  /** @param now ms since the epoch */
  record(consumer: string, now: number): void
  /** At most two, the latest first. */
  at(now: number): string[]
}

export const createRecentConsumers = (): RecentConsumers => {
  let last = { consumer: '', at: Number.NEGATIVE_INFINITY }
  let other = { consumer: '', at: Number.NEGATIVE_INFINITY }
  return {
    record: (consumer, now) => {
      if (consumer !== last.consumer) {
        const former = other
        other = last
        last = former
        last.consumer = consumer
      }
      last.at = now
    },
    at: now => [last, other].filter(({ at }) => now - at < recentForMs).map(({ consumer }) => consumer),
  }
}
