// Deeply frozen values. Apart from what reads configurations, which takes a process long to load.

/** The value, and all in it, never to be changed. */
export const frozen = <Value>(value: Value): Value => {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(frozen)
  return value
}
