// Percentiles of any choice of steps, found without adding up all of their values: counts are summed over the steps before each
// in groups of neighbouring values, and only the group that holds a percentile is looked into. Which steps are chosen is left to
// the bootstrap (step-percentiles.ts).

/** How often each value was measured in a step: ascending places of values, and a count for each. */
export type PlacedCounts = readonly (readonly [place: number, count: number])[]

/** From a first step up to, not including, a last one. */
export type Block = readonly [from: number, to: number]

/** The places of the values at ascending percentiles of all steps in these blocks; null where nothing was measured. */
export type PercentilesOf = (blocks: readonly Block[], percents: readonly number[]) => number[] | null

// More of them make what is found cheaper, and what is held larger by as many numbers a step.
const groups = 64

/** @param places how many values there are in all */
export const percentilesOver = (steps: readonly PlacedCounts[], places: number): PercentilesOf => {
  const width = Math.max(1, Math.ceil(places / groups))
  const row = steps.length + 1
  /** By group and step: how many values were measured in steps before, in this group and those below. */
  const before = new Float64Array(groups * row)
  /** By group and step: where the values of the step begin in the two lists. */
  const begins = new Uint32Array(groups * row)
  for (const [step, counts] of steps.entries())
    for (const [place, count] of counts) {
      const at = Math.floor(place / width) * row + step + 1
      before[at] = (before[at] as number) + count
      begins[at] = (begins[at] as number) + 1
    }
  for (let group = 0, entries = 0; group < groups; group += 1) {
    const at = group * row
    begins[at] = entries
    for (let step = 1; step < row; step += 1) {
      entries += begins[at + step] as number
      begins[at + step] = entries
      before[at + step] = (before[at + step] as number) + (before[at + step - 1] as number)
    }
  }
  for (let at = row; at < before.length; at += 1)
    before[at] = (before[at] as number) + (before[at - row] as number)
  const size = begins.at(-1) as number
  const [listed, counted] = [new Uint32Array(size), new Float64Array(size)]
  const next = begins.slice()
  for (const [step, counts] of steps.entries())
    for (const [place, count] of counts) {
      const at = Math.floor(place / width) * row + step
      const entry = next[at] as number
      next[at] = entry + 1
      listed[entry] = place
      counted[entry] = count
    }

  /** How many values the groups up to this one have. */
  const upTo = (group: number, blocks: readonly Block[]): number => {
    let sum = 0
    if (group >= 0)
      for (const [from, to] of blocks)
        sum += (before[group * row + to] as number) - (before[group * row + from] as number)
    return sum
  }
  const sums = new Float64Array(width)
  const placeIn = (group: number, rank: number, blocks: readonly Block[]): number => {
    const first = group * width
    sums.fill(0)
    for (const [from, to] of blocks) {
      const end = begins[group * row + to] as number
      for (let entry = begins[group * row + from] as number; entry < end; entry += 1) {
        const at = (listed[entry] as number) - first
        sums[at] = (sums[at] as number) + (counted[entry] as number)
      }
    }
    let [at, below] = [0, upTo(group - 1, blocks) + (sums[0] as number)]
    while (below < rank && at + 1 < width) {
      at += 1
      below += sums[at] as number
    }
    return first + at
  }

  return (blocks, percents) => {
    const total = upTo(groups - 1, blocks)
    if (total === 0) return null
    let least = 0
    return percents.map(percent => {
      const rank = Math.max(1, Math.floor((percent / 100) * total + 0.5))
      let most = groups - 1
      while (least < most) {
        const middle = (least + most) >> 1
        if (upTo(middle, blocks) < rank) least = middle + 1
        else most = middle
      }
      return placeIn(least, rank, blocks)
    })
  }
}
