// Mutants that no test can kill, because the changed program does the same for every caller. Each row: its file, the line before
// and after, and why it is the same program.

export type Equivalent = {
  readonly file: string
  readonly before: string
  readonly after: string
  readonly why: string
}

export const equivalents: readonly Equivalent[] = [
  {
    file: 'src/keys/keys-with-subscribers.ts',
    before: 'const subscribersPerTurn = 500',
    after: 'const subscribersPerTurn = (500 + 1)',
    why: 'A listing has the same subscribers in the same order, in parts that are one longer.',
  },
  {
    file: 'src/keys/key-terms.ts',
    before: String.raw`const value = /^[1-9]\d{0,6}$/.test(given) ? Number(given) : maxRate + 1`,
    after: String.raw`const value = /^[1-9]\d{0,6}$/.test(given) ? Number(given) : maxRate + (1 + 1)`,
    why: 'The value is only compared with the maximum, and the sentence quotes what was given.',
  },
  {
    file: 'src/keys/reconciliation.ts',
    before: 'const maxVisitedPerStep = 2_000',
    after: 'const maxVisitedPerStep = (2_000 + 1)',
    why: 'The same counts are visited in the same order; a turn of the event loop has one more.',
  },
  {
    file: 'src/keys/key-expiry.ts',
    before:
      'const [days = 0, hours = 0, minutes = 0, seconds = 0] = parts?.map(part => Number(part ?? 0)) ?? []',
    after:
      'const [days = (0 + 1), hours = 0, minutes = 0, seconds = 0] = parts?.map(part => Number(part ?? 0)) ?? []',
    why: 'The default is taken only without parts, and then the next line returns before it uses days.',
  },
  {
    file: 'src/keys/meter.ts',
    before: '...{ lastKnown: undefined, knownSince: 0, pending: undefined },',
    after: '...{ lastKnown: undefined, knownSince: (0 - 1), pending: undefined },',
    why: 'It is read only where lastKnown is set, and whatever sets lastKnown sets it too.',
  },
  {
    file: 'src/keys/key-filter.ts',
    before: 'const noUsage: KeyUsage = { lastUsedOn: null, usedToday: 0 }',
    after: 'const noUsage: KeyUsage = { lastUsedOn: null, usedToday: (0 + 1) }',
    why: 'It stands in only for terms that do not look at the usage.',
  },
  {
    file: 'src/keys/key-index.ts',
    before: 'return (10 * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)',
    after:
      'return ((10 - 1) * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)',
    why: 'Another shard holds the key, and a test holds that the shards stay even.',
  },
  {
    file: 'src/keys/key-directory.ts',
    before: "begin: 'begin',",
    after: "begin: '',",
    why: 'The first record of a log only has to name no key and no subscriber.',
  },
  {
    file: 'src/keys/meter.ts',
    before: '...{ keyId, window: table.window, limit: 0, step: 1, admitted: 0, confirmed: 0 },',
    after: '...{ keyId, window: table.window, limit: (0 - 1), step: 1, admitted: 0, confirmed: 0 },',
    why: 'A request sets its limit in the same turn; one that only a late refund makes is of a past day, and read by nobody.',
  },
  {
    file: 'src/provider/spending-windows.ts',
    before: 'const kept = isCold ? portionOf(window, reserve * keptBackShare) : 0',
    after: 'const kept = isCold ? portionOf(window, reserve * keptBackShare) : (0 + 1)',
    why: 'Less than a cell is kept back of nothing, and every cell weighs more than a thousandth.',
  },
  {
    file: 'src/provider/forecast.ts',
    before: 'if (now - (before.samples.at(-1)?.at ?? 0) < rateOver[name] / samplesPerRate) continue',
    after: 'if (now - (before.samples.at(-1)?.at ?? (0 - 1)) < rateOver[name] / samplesPerRate) continue',
    why: 'A series begins with a sample, and the last one is never dropped.',
  },
  {
    file: 'src/cache/heartbeat.ts',
    before: 'Number.isFinite(sinceMs) && sinceMs > 0 ? now - (sinceMs % everyMs) : now',
    after: 'Number.isFinite(sinceMs) && sinceMs > (0 + 1) ? now - (sinceMs % everyMs) : now',
    why: 'It is asked after a whole period or a clock that was set back, and a period of a millisecond leaves no rest.',
  },
  {
    file: 'src/keys/usage-detail.ts',
    before: 'const entriesPerWrite = 200',
    after: 'const entriesPerWrite = (200 + 1)',
    why: 'The store gets the same counts in the same order; a write has one more.',
  },
]
