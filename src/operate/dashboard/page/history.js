// The history that the charts draw: how a new point joins it, and how shares lie on one another. Pure; draws nothing.

/** @typedef {import('./contract.ts').History} History */
/** @typedef {import('./contract.ts').Point} Point */
/** @typedef {(number | null)[]} Values */

const names = /** @type {const} */ (['requestsPerSecond', 'errorsPerSecond', 'p50', 'p90', 'p99'])
const tiers = /** @type {const} */ (['memory', 'shared', 'provider'])

/**
 * Appends a point to a history, or replaces the newest one while its step lasts.
 * @param {History} history
 * @param {Point} point
 * @param {string} at
 */
export const extend = (history, point, at) => {
  const stepMs = history.stepSeconds * 1000
  const steps = Math.floor((Date.parse(at) - Date.parse(history.endsAt)) / stepMs)
  if (steps < 0) return
  /** @param {Values} values @param {number | null} value */
  const push = (values, value) => {
    if (steps === 0) values[values.length - 1] = value
    else {
      for (let i = 1; i < Math.min(steps, values.length); i += 1) values.push(null)
      values.push(value)
      values.splice(0, Math.min(steps, values.length - 1))
    }
  }
  for (const name of names) push(history[name], point[name])
  for (const tier of tiers) push(history.hitShare[tier], point.hitShare[tier])
  if (steps > 0) history.endsAt = new Date(Date.parse(history.endsAt) + steps * stepMs).toISOString()
}

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
