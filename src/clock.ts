// What time it is. The only file that reads the machine's clock; everything else is handed a Clock.

/** A source of the current instant, in milliseconds since 1970-01-01T00:00Z. */
export type Clock = { now(): number }

export const systemClock: Clock = { now: () => Date.now() }

/** A clock that is ahead of another one by an offset, which may change. */
export const clockAhead = (clock: Clock, offset: { readonly ms: number }): Clock => ({
  now: () => clock.now() + offset.ms,
})
