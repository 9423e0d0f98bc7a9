// The local allowance: how many units of a count an instance may admit by itself while the store is away. Pure arithmetic;
// when the allowance is used is the partition's.

// Each count is published at 64 steps of its limit.
const stepsPerLimit = 64

/** Units between two published messages of a count. */
export const stepOf = (limit: number): number => Math.max(1, Math.ceil(limit / stepsPerLimit))

/**
 * The equal part of one instance in what was left of a limit at the last known count. Others may have used up to a step
 * since. Two steps are left out, so that one message lost with the connection does not make the allowances together
 * exceed the limit.
 */
export const allowanceOf = (limit: number, lastKnown: number, instances: number): number =>
  Math.max(0, Math.floor((limit - lastKnown - 2 * stepOf(limit)) / instances))
