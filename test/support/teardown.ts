// What a test offers for its teardowns, and so does the scope of a measurement.

/** Collects teardowns, which run last first. */
export type Teardown = { teardown(fn: () => unknown): void }
