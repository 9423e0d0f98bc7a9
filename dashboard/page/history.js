// The data of the charts: the newest point, and stacked shares.

/** @typedef {import('./contract.ts').History} History */
/** @typedef {import('./contract.ts').Point} Point */
/** @typedef {(number | null)[]} Values */

const names = /** @type {const} */ (['requestsPerSecond', 'errorsPerSecond', 'p50', 'p90', 'p99'])
const tiers = /** @type {const} */ (['memory', 'shared', 'provider'])

/** @param {readonly Values[]} lines @returns {Values[]} each with those before it */
export const stacked = lines => {
  /** @type {Values[]} */
  const sums = []
  for (const values of lines) {
    const below = sums.at(-1)
    sums.push(values.map((value, i) => (value === null ? null : value + (below?.[i] ?? 0))))
  }
  return sums
}

/** The last point of a history. @param {History} history @returns {Point} */
export const newestOf = history => {
  /** @template {string} Name @param {readonly Name[]} of @param {Record<Name, Values>} lines */
  const last = (of, lines) =>
    /** @type {Record<Name, number | null>} */ (
      Object.fromEntries(of.map(name => [name, lines[name].at(-1) ?? null]))
    )
  return { ...last(names, history), hitShare: last(tiers, history.hitShare) }
}
