// How often things were requested: counts, the most popular, and the skew. Exact up to a number of different things.

export type PopularityReport = ReturnType<ReturnType<typeof createPopularity>['report']>

const maxNames = 1_000_000

export const createPopularity = () => {
  const counts = new Map<string, number>()
  let requests = 0
  let isExact = true
  return {
    add: (name: string): void => {
      requests += 1
      const count = counts.get(name)
      if (count !== undefined) counts.set(name, count + 1)
      else if (counts.size < maxNames) counts.set(name, 1)
      else isExact = false
    },
    report: (top: number) => {
      const sorted = [...counts].sort(([, one], [, other]) => other - one)
      const shareOf = (first: number) =>
        requests === 0 ? 0 : sorted.slice(0, first).reduce((sum, [, count]) => sum + count, 0) / requests
      return {
        // A lower bound unless exact.
        distinct: counts.size,
        isExact,
        requests,
        top: sorted.slice(0, top).map(([name, count]) => ({ name, requests: count })),
        topShares: { 1: shareOf(1), 10: shareOf(10), 100: shareOf(100) },
        // The best Zipf exponent; null for fewer than ten names.
        zipf: zipfOf(sorted.map(([, count]) => count)),
      }
    },
  }
}

const fewestRanks = 10
// Later ranks were requested too rarely to matter.
const maxRanks = 10_000
const largestExponent = 4
const steps = 40

/**
 * The most likely exponent s of descending counts, where rank r is requested in proportion to r^-s. The sum over ranks is convex
 * in s, so that bisection by its slope finds it.
 */
const zipfOf = (counts: readonly number[]): number | null => {
  if (counts.length < fewestRanks) return null
  const ranks = counts.slice(0, maxRanks)
  const logs = ranks.map((_, i) => Math.log(i + 1))
  const total = ranks.reduce((sum, count) => sum + count, 0)
  const observed = ranks.reduce((sum, count, i) => sum + count * (logs[i] ?? 0), 0) / total
  let [least, most] = [0, largestExponent]
  for (let i = 0; i < steps; i++) {
    const exponent = (least + most) / 2
    let weights = 0
    let weighted = 0
    for (const log of logs) {
      const weight = Math.exp(-exponent * log)
      weights += weight
      weighted += weight * log
    }
    // The mean logarithm of the ranks falls with the exponent.
    if (weighted / weights > observed) least = exponent
    else most = exponent
  }
  return Math.round(((least + most) / 2) * 1_000) / 1_000
}
