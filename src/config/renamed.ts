// Renamed settings. A former name is an error that gives the present one, so that no file or variable silently loses its
// effect. The present settings are in schema.ts.

/** Former path -> present path, sorted, one line each. */
export const renamedSettings: Readonly<Record<string, string>> = {
  'cache.aheadFor': 'cache.refreshAheadFor',
  'cache.holdFor': 'cache.leaseFor',
  'provider.breaker.restFor': 'provider.breaker.halfOpenAfter',
  'provider.breaker.restForAtMost': 'provider.breaker.halfOpenAfterAtMost',
}
