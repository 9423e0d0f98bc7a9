// A result of `whatif` as the command would write it, with figures that follow from the place of the setting alone.

import type { WhatIfResult } from '../../tools/load/what-if/what-if.ts'

/** @param values of `cache.freshFor`, a case for each: every further one has more hits, less weight and older weather */
export const drawnWhatIf = (values: readonly string[]): WhatIfResult => ({
  format: 'abohawa-what-if/1',
  version: '1.0.0',
  traffic: {
    files: ['day.ndjson.gz'],
    sha256: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
    ...{ requests: 20_000, faultyLines: 0, leftOut: { method: 0, refused: 3, keyless: 0 } },
    ...{ from: '2026-11-20T18:00:00.000Z', spanSeconds: 86_399 },
  },
  base: [{ path: 'cache.cellDegrees', value: '0.2', default: '0.1' }],
  ...{ instances: 1, warmUpSeconds: 0, warm: false, latencyMs: 0, budget: null },
  cases: values.map((value, i) => {
    const hits = 14_000 + 1_500 * i
    const weight = 24_000 / (i + 1)
    return {
      name: `cache.freshFor=${value}`,
      settings: { 'cache.freshFor': value },
      paretoOptimal: i > 0,
      budgetBit: false,
      requests: 20_000,
      weather: 18_000,
      none: 2_000,
      hits: { memory: hits, shared: 0 },
      ...{ stale: 500, misses: 17_500 - hits, failed: 0, hitShare: hits / 18_000 },
      provider: {
        ...{ requests: Math.round(weight / 4), cells: 700, weight, days: [] },
        most: { minute: 60, hour: 1_500, day: weight },
      },
      stretch: { most: 1, share: 0 },
      age: { p50: 2_000 * (i + 1), p95: 9_000 * (i + 1), max: 30_000 },
      memory: { mostBytes: 24_000_000, mostEntries: 700, sharedEntries: 700, sharedBytes: 9_000_000 },
      stepSeconds: 3_600,
      steps: Array.from({ length: 24 }, (_, hour) => ({
        at: hour * 3_600,
        ...{
          requests: 800,
          hits: 500 + 60 * i + 10 * (hour % 8),
          stale: 20,
          misses: 100 - 10 * i,
          failed: 0,
        },
        weight: 100 * (24 - hour) + 300 * i,
        stretch: 1,
      })),
    }
  }),
  unfinished: [],
})
