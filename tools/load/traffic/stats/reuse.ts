// Reuse of objects: the reuse distance (how many other objects were requested since), the reuse time, and the miss-ratio curve of LRU
// caches. Exact, by Mattson's stack algorithm on a Fenwick tree, in O(log n) per request.

type Quantiles = { readonly p50: number; readonly p90: number; readonly p99: number; readonly max: number }

const spans = [1, 10, 60, 600, 3_600, 6 * 3_600, 86_400]

export const createReuse = () => {
  const distances: number[] = []
  // By the logarithm of the time, in steps of 2 %.
  const times: number[] = []
  const within = spans.map(() => 0)
  const last = new Map<string, { place: number; at: number }>()
  let tree = createTree(1_024)
  let next = 0
  let requests = 0

  // Places are numbered in the order of requests; when they run out, objects are renumbered in the order of their last request.
  const renumber = (): void => {
    const ordered = [...last.values()].sort((one, other) => one.place - other.place)
    tree = createTree(Math.max(1_024, 4 * ordered.length))
    next = 0
    for (const entry of ordered) {
      entry.place = next
      tree.add(next, 1)
      next += 1
    }
  }

  return {
    /** @param at ms since the epoch */
    add: (object: string, at: number): void => {
      requests += 1
      if (next >= tree.size) renumber()
      const before = last.get(object)
      if (before === undefined) last.set(object, { place: next, at })
      else {
        const distance = last.size - tree.sumUpTo(before.place)
        distances[distance] = (distances[distance] ?? 0) + 1
        const ms = Math.max(0, at - before.at)
        const step = stepOf(ms)
        times[step] = (times[step] ?? 0) + 1
        for (const [i, seconds] of spans.entries())
          if (ms <= seconds * 1_000) within[i] = (within[i] ?? 0) + 1
        tree.add(before.place, -1)
        before.place = next
        before.at = at
      }
      tree.add(next, 1)
      next += 1
    },
    report: () => ({
      objects: last.size,
      requests,
      // First requests for an object miss in any cache.
      first: last.size,
      // Other objects since the last request for the same one.
      distance: quantilesOf(distances, distance => distance),
      // Seconds since the last request for the same object.
      seconds: quantilesOf(times, secondsOf),
      // The share of requests that follow a request for the same object within this time.
      within: spans.map((seconds, i) => ({
        seconds,
        share: requests === 0 ? 0 : (within[i] ?? 0) / requests,
      })),
      // Of an LRU cache without expiry, by its size in objects.
      missRatios: missRatiosOf(distances, last.size, requests),
    }),
  }
}

/** A Fenwick tree: prefix sums of numbers that change. */
const createTree = (size: number) => {
  const sums = new Int32Array(size + 1)
  return {
    size,
    add: (place: number, change: number): void => {
      for (let i = place + 1; i <= size; i += i & -i) sums[i] = (sums[i] as number) + change
    },
    /** Includes the place. */
    sumUpTo: (place: number): number => {
      let sum = 0
      for (let i = place + 1; i > 0; i -= i & -i) sum += sums[i] as number
      return sum
    },
  }
}

const growth = Math.log(1.02)
const stepOf = (ms: number): number => Math.round(Math.log(ms + 1) / growth)
const secondsOf = (step: number): number => Math.round(Math.exp(step * growth) - 1) / 1_000

const quantilesOf = (counts: readonly number[], valueAt: (index: number) => number): Quantiles | null => {
  let total = 0
  let max = 0
  counts.forEach((count, index) => {
    total += count
    max = index
  })
  if (total === 0) return null
  const at = (share: number): number => {
    let sum = 0
    for (let i = 0; i < counts.length; i++) {
      sum += counts[i] ?? 0
      if (sum >= share * total) return valueAt(i)
    }
    return valueAt(max)
  }
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: valueAt(max) }
}

/** For 1, 2, 5, 10, 20, 50, … objects and for all. */
const missRatiosOf = (distances: readonly number[], objects: number, requests: number) => {
  if (requests === 0) return []
  const sizes: number[] = []
  for (let power = 1; power < objects; power *= 10)
    sizes.push(...[power, 2 * power, 5 * power].filter(size => size < objects))
  sizes.push(objects)
  let hits = 0
  let from = 0
  return sizes.map(size => {
    // A cache of this size still has an object if fewer others came since.
    for (; from < size; from++) hits += distances[from] ?? 0
    return { objects: size, missRatio: 1 - hits / requests }
  })
}
