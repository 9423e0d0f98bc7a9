// What an instance may deal of a count by itself while nobody can count together.

// Counts are told to all at 64 steps of the limit.
const stepsPerLimit = 64

/** Units between two tellings of a count. */
export const stepOf = (limit: number): number => Math.max(1, Math.ceil(limit / stepsPerLimit))

/**
 * The share of one of several instances in what was left when it last saw or heard of the count. Others may have taken
 * up to a step since; two are left out, so that even a telling lost with the connection does not let the shares
 * together be more than what is left.
 */
export const shareOf = (limit: number, seen: number, instances: number): number =>
  Math.max(0, Math.floor((limit - seen - 2 * stepOf(limit)) / instances))
