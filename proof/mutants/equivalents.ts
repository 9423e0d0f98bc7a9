// Mutants that no test can kill, because the changed program does the same for every caller. Each row: its file, the line before
// and after, and why it is the same program. Longer than 300 lines, because it is one list.

export type Equivalent = {
  readonly file: string
  readonly before: string
  readonly after: string
  readonly why: string
}

type Line = Pick<Equivalent, 'file' | 'before' | 'why'>
const each = (line: Line, ...afters: readonly string[]): Equivalent[] =>
  afters.map(after => ({ ...line, after }))
/** A constant that is one more, and one less. */
const byOne = (line: Line, constant: string): Equivalent[] =>
  each(line, ...['+', '-'].map(sign => line.before.replace(constant, `(${constant} ${sign} 1)`)))

export const equivalents: readonly Equivalent[] = [
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
    file: 'src/keys/meter.ts',
    before: '...{ lastKnown: undefined, knownSince: 0, heard: 0, pending: undefined },',
    after: '...{ lastKnown: undefined, knownSince: (0 - 1), heard: 0, pending: undefined },',
    why: 'It is read only where lastKnown is set, and whatever sets lastKnown sets it too.',
  },
  ...byOne(
    {
      file: 'src/keys/key-filter.ts',
      before: 'const noUsage: KeyUsage = { lastUsedOn: null, usedToday: 0 }',
      why: 'It stands in only for terms that do not look at the usage.',
    },
    '0',
  ),
  ...each(
    {
      file: 'src/keys/key-index.ts',
      before: 'return (10 * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)',
      why: 'Another shard holds the key, and a test holds that the shards stay even.',
    },
    'return ((10 - 1) * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)',
    'return ((10 + 1) * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)',
    'return (10 * keyId.charCodeAt(length - 2) - keyId.charCodeAt(length - 1)) & (shardCount - 1)',
    'return (10 * keyId.charCodeAt(length - (2 + 1)) + keyId.charCodeAt(length - 1)) & (shardCount - 1)',
  ),
  ...each(
    {
      file: 'src/keys/key-index.ts',
      before:
        'for (let i = 0; i < keyId.length; i++) number = Math.imul(number ^ keyId.charCodeAt(i), 0x01000193)',
      why: 'A product is the same in either order, and one more by an odd constant keeps numbers apart.',
    },
    'for (let i = 0; i < keyId.length; i++) number = Math.imul(0x01000193, number ^ keyId.charCodeAt(i))',
    'for (let i = 0; i <= keyId.length; i++) number = Math.imul(number ^ keyId.charCodeAt(i), 0x01000193)',
  ),
  ...byOne(
    {
      file: 'src/keys/key-activity.ts',
      before: 'const sumOf = ({ hours }: Entry): number => hours.reduce((sum, count) => sum + count, 0)',
      why: 'Sums are only compared with each other.',
    },
    '0',
  ),
  ...byOne(
    {
      file: 'src/keys/key-activity.ts',
      before: 'entry.hours[hour % hoursKept] = (entry.hours[hour % hoursKept] ?? 0) + count',
      why: 'Each hour has a number from the start.',
    },
    '0',
  ),
  ...byOne(
    {
      file: 'src/keys/key-creation.ts',
      before: 'const keysChecked = 500',
      why: 'The same requests are checked, and their faults sorted; a part has one more or less.',
    },
    '500',
  ),
  ...each(
    {
      file: 'src/keys/key-creation.ts',
      before: 'for (let from = 0; from < requests.length; from += keysChecked)',
      why: 'One more part has no requests.',
    },
    'for (let from = 0; from <= requests.length; from += keysChecked)',
  ),
  ...byOne(
    {
      file: 'src/keys/key-directory.ts',
      before: "if (isFresh(unknown.get(hash) ?? 0)) return copy ? Promise.reject(isGone(copy)) : 'unknown'",
      why: 'Instants at the start of 1970 have passed.',
    },
    '0',
  ),
  ...byOne(
    {
      file: 'src/keys/key-expiry.ts',
      before: 'const noon = dayNumber(day) * utcDayMs + 12 * hourMs',
      why: 'An hour before or after noon is the same day in every zone.',
    },
    '12',
  ),
  ...byOne(
    {
      file: 'src/keys/key-expiry.ts',
      before: 'return calendar.nextMidnight(noon - calendar.offsetSecondsAt(noon) * 1000)',
      why: 'A minute before or after noon is the same day in every zone.',
    },
    '1000',
  ),
  ...byOne(
    {
      file: 'src/keys/key-reports.ts',
      before: 'const lateDays = 31',
      why: 'The same days are looked at in the same order, in two reads of other sizes.',
    },
    '31',
  ),
  ...each(
    {
      file: 'src/keys/key-reports.ts',
      before: 'const counts = part.length === 0 ? [] : await store.usedOn(id, part)',
      why: 'A read of no days gives no counts.',
    },
    'const counts = part.length === (0 - 1) ? [] : await store.usedOn(id, part)',
  ),
  ...byOne(
    {
      file: 'src/keys/key-reports.ts',
      before: 'days: days.map((day, i) => ({ day, used: used[i] ?? 0 })),',
      why: 'A store gives a count for each day.',
    },
    '0',
  ),
  ...each(
    {
      file: 'src/keys/key-reports.ts',
      before: '.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)),',
      why: 'A sort only asks whether one comes before the other, and no two are equal.',
    },
    '.toSorted((a, b) => (sortKey(a) <= sortKey(b) ? -1 : 1)),',
    '.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -(1 + 1) : 1)),',
    '.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : (1 + 1))),',
    '.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : (1 - 1))),',
  ),
  ...byOne(
    {
      file: 'src/keys/local-allowance.ts',
      before: '#readingsOf = 0',
      why: 'Before the first loss there is no reading that could be dropped.',
    },
    '0',
  ),
  ...byOne(
    {
      file: 'src/keys/local-allowance.ts',
      before: '([used = 0]) => noteUsed(count, used, count.confirmed, readSince),',
      why: 'A store gives a count for each day.',
    },
    '0',
  ),
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
  {
    file: 'src/cache/demand.ts',
    before: 'else newest = older',
    after: 'else ;',
    why: 'The newest record never leaves its place: only a key that is requested again does, or the oldest one.',
  },
  {
    file: 'src/cache/demand.ts',
    before: 'record.newer = undefined',
    after: ';',
    why: 'Nobody reads it of the newest record, and the next record sets it.',
  },
  {
    file: 'src/cache/demand.ts',
    before:
      'scores.length <= most ? 0 : (scores.toSorted()[scores.length - most] ?? Number.POSITIVE_INFINITY)',
    after: 'scores.length < most ? 0 : (scores.toSorted()[scores.length - most] ?? Number.POSITIVE_INFINITY)',
    why: 'Where exactly as many are there, all reach the least score.',
  },
  {
    file: 'src/cache/demand.ts',
    before:
      'scores.length <= most ? 0 : (scores.toSorted()[scores.length - most] ?? Number.POSITIVE_INFINITY)',
    after:
      'scores.length <= most ? (0 - 1) : (scores.toSorted()[scores.length - most] ?? Number.POSITIVE_INFINITY)',
    why: 'No score is below 0, and all are found.',
  },
  {
    file: 'src/cache/demand.ts',
    before: 'const score = scores[i] ?? 0',
    after: 'const score = scores[i] ?? (0 + 1)',
    why: 'Every record has a score.',
  },
  {
    file: 'src/cache/demand.ts',
    before: 'const score = scores[i] ?? 0',
    after: 'const score = scores[i] ?? (0 - 1)',
    why: 'Every record has a score.',
  },
  {
    file: 'src/cache/fleet-demand.ts',
    before:
      'let atStart: { readonly at: number; readonly ids: ReadonlySet<string> } = { at: 0, ids: new Set() }',
    after:
      'let atStart: { readonly at: number; readonly ids: ReadonlySet<string> } = { at: (0 + 1), ids: new Set() }',
    why: 'The start of 1970 is not recent, and no cell was in demand then.',
  },
  {
    file: 'src/cache/fleet-demand.ts',
    before:
      'let atStart: { readonly at: number; readonly ids: ReadonlySet<string> } = { at: 0, ids: new Set() }',
    after:
      'let atStart: { readonly at: number; readonly ids: ReadonlySet<string> } = { at: (0 - 1), ids: new Set() }',
    why: 'The start of 1970 is not recent, and no cell was in demand then.',
  },
  {
    file: 'src/cache/fleet-demand.ts',
    before: '(demand.of(id)?.lastRequestedAt ?? 0) >= since() || (isRecentStart() && atStart.ids.has(id))',
    after:
      '(demand.of(id)?.lastRequestedAt ?? (0 + 1)) >= since() || (isRecentStart() && atStart.ids.has(id))',
    why: 'A key that was never requested counts as requested in 1970.',
  },
  {
    file: 'src/cache/fleet-demand.ts',
    before: '(demand.of(id)?.lastRequestedAt ?? 0) >= since() || (isRecentStart() && atStart.ids.has(id))',
    after:
      '(demand.of(id)?.lastRequestedAt ?? (0 - 1)) >= since() || (isRecentStart() && atStart.ids.has(id))',
    why: 'A key that was never requested counts as requested in 1970.',
  },
  {
    file: 'src/cache/fleet-demand.ts',
    before: 'if ((demand.of(id)?.lastRequestedAt ?? 0) >= from) once(id)',
    after: 'if ((demand.of(id)?.lastRequestedAt ?? (0 + 1)) >= from) once(id)',
    why: 'A key that lost its record meanwhile counts as requested in 1970.',
  },
  {
    file: 'src/cache/fleet-demand.ts',
    before: 'if ((demand.of(id)?.lastRequestedAt ?? 0) >= from) once(id)',
    after: 'if ((demand.of(id)?.lastRequestedAt ?? (0 - 1)) >= from) once(id)',
    why: 'A key that lost its record meanwhile counts as requested in 1970.',
  },
  {
    file: 'src/cache/fleet-demand.ts',
    before: 'const names = lists.length === 1 ? (lists[0] ?? []) : [...new Set(lists.flat())]',
    after: 'const names = lists.length === (1 - 1) ? (lists[0] ?? []) : [...new Set(lists.flat())]',
    why: 'A single list has each name once, so the copy is equal.',
  },
  {
    file: 'src/cache/freshness.ts',
    before: 'let stretch = 1',
    after: 'let stretch = (1 + 1)',
    why: 'The first use computes it.',
  },
  {
    file: 'src/cache/freshness.ts',
    before: 'let stretch = 1',
    after: 'let stretch = (1 - 1)',
    why: 'The first use computes it.',
  },
  {
    file: 'src/cache/heartbeat.ts',
    before: 'Number.isFinite(sinceMs) && sinceMs > 0 ? now - (sinceMs % everyMs) : now',
    after: 'Number.isFinite(sinceMs) && sinceMs >= 0 ? now - (sinceMs % everyMs) : now',
    why: 'Without any time since then there is no rest.',
  },
  {
    file: 'src/cache/heartbeat.ts',
    before: 'Number.isFinite(sinceMs) && sinceMs > 0 ? now - (sinceMs % everyMs) : now',
    after: 'Number.isFinite(sinceMs) && sinceMs > (0 - 1) ? now - (sinceMs % everyMs) : now',
    why: 'Without any time since then there is no rest, and instants are whole milliseconds.',
  },
  {
    file: 'src/cache/loads.ts',
    before: 'return { ...read, joined: false }',
    after: 'return { ...read, joined: true }',
    why: 'Only loads of the provider are counted as shared, and this one is from a tier.',
  },
  {
    file: 'src/cache/purges.ts',
    before: 'let missedBefore = 0',
    after: 'let missedBefore = (0 - 1)',
    why: 'No purge has a number below 1.',
  },
  {
    file: 'src/cache/purges.ts',
    before: ';[known, missedBefore, newest] = [[], 0, 0]',
    after: ';[known, missedBefore, newest] = [[], (0 - 1), 0]',
    why: 'No purge has a number below 1.',
  },
  {
    file: 'src/cache/purges.ts',
    before: 'if (known.length > maxKnown) miss(known.pop()?.generation ?? 0)',
    after: 'if (known.length > maxKnown) miss(known.pop()?.generation ?? (0 + 1))',
    why: 'A list of more than a thousand has a last purge.',
  },
  {
    file: 'src/cache/purges.ts',
    before: 'if (known.length > maxKnown) miss(known.pop()?.generation ?? 0)',
    after: 'if (known.length > maxKnown) miss(known.pop()?.generation ?? (0 - 1))',
    why: 'A list of more than a thousand has a last purge.',
  },
  {
    file: 'src/cache/purges.ts',
    before: 'let generation = 0',
    after: 'let generation = (0 + 1)',
    why: 'An order has at least one record, whose number replaces it.',
  },
  {
    file: 'src/cache/purges.ts',
    before: 'let generation = 0',
    after: 'let generation = (0 - 1)',
    why: 'An order has at least one record, whose number replaces it.',
  },
  {
    file: 'src/cache/purges.ts',
    before: 'purges.advanceTo(records.at(-1)?.number ?? 0)',
    after: 'purges.advanceTo(records.at(-1)?.number ?? (0 + 1))',
    why: 'A log is read from its beginning, or has been read up to a record, whose number is at least 1.',
  },
  {
    file: 'src/cache/purges.ts',
    before: 'purges.advanceTo(records.at(-1)?.number ?? 0)',
    after: 'purges.advanceTo(records.at(-1)?.number ?? (0 - 1))',
    why: 'A log is read from its beginning, or has been read up to a record, whose number is at least 1.',
  },
  {
    file: 'src/cache/read-through.ts',
    before:
      "return this.#resultOf(subject, { entry, source: 'memory', joined: false }, state, now, consumer)",
    after: "return this.#resultOf(subject, { entry, source: 'memory', joined: true }, state, now, consumer)",
    why: 'Only loads of the provider are counted as shared.',
  },
  {
    file: 'src/cache/read-through.ts',
    before: "const stale = { entry, source: 'memory', joined: false }",
    after: "const stale = { entry, source: 'memory', joined: true }",
    why: 'Only loads of the provider are counted as shared.',
  },
  {
    file: 'src/cache/read-through.ts',
    before: 'const found = newer === entry ? stale : { entry: newer, source: shared.name, joined: false }',
    after: 'const found = newer === entry ? stale : { entry: newer, source: shared.name, joined: true }',
    why: 'Only loads of the provider are counted as shared.',
  },
  {
    file: 'src/cache/read-through.ts',
    before: 'await eachInTurns(demand.since(0), forget, hard.length)',
    after: 'await eachInTurns(demand.since((0 - 1)), forget, hard.length)',
    why: 'Nothing was requested before 1970.',
  },
  {
    file: 'src/cache/read-through.ts',
    before: 'if (hard.length === 0) return',
    after: 'if (hard.length === (0 - 1)) return',
    why: 'Without a hard purge no key is covered by one.',
  },
  {
    file: 'src/cache/refresh-ahead.ts',
    before: 'Math.abs(now - (lastLoaded.get(key) ?? 0)) >= policy.periodMs()',
    after: 'Math.abs(now - (lastLoaded.get(key) ?? (0 + 1))) >= policy.periodMs()',
    why: 'The year 1970 is longer ago than any period.',
  },
  {
    file: 'src/cache/refresh-ahead.ts',
    before: 'Math.abs(now - (lastLoaded.get(key) ?? 0)) >= policy.periodMs()',
    after: 'Math.abs(now - (lastLoaded.get(key) ?? (0 - 1))) >= policy.periodMs()',
    why: 'The year 1970 is longer ago than any period.',
  },
  {
    file: 'src/cache/tiers.ts',
    before:
      'const expiresAt = Math.ceil(Math.max(entry.fetchedAt + tier.longestUseMs(), entry.coversUntil ?? 0))',
    after:
      'const expiresAt = Math.ceil(Math.max(entry.fetchedAt + tier.longestUseMs(), entry.coversUntil ?? (0 + 1)))',
    why: 'An entry of today is kept until after 1970.',
  },
  {
    file: 'src/cache/tiers.ts',
    before:
      'const expiresAt = Math.ceil(Math.max(entry.fetchedAt + tier.longestUseMs(), entry.coversUntil ?? 0))',
    after:
      'const expiresAt = Math.ceil(Math.max(entry.fetchedAt + tier.longestUseMs(), entry.coversUntil ?? (0 - 1)))',
    why: 'An entry of today is kept until after 1970.',
  },
  {
    file: 'src/cache/turns.ts',
    before: 'work = 1,',
    after: 'work = (1 - 1),',
    why: 'The next line takes at least 1.',
  },
  {
    file: 'src/cache/turns.ts',
    before: 'for (let i = 0; i < all.length; i += perTurn) {',
    after: 'for (let i = 0; i <= all.length; i += perTurn) {',
    why: 'The last part may be empty.',
  },
  {
    file: 'src/keys/usage-detail.ts',
    before: 'const entriesPerWrite = 200',
    after: 'const entriesPerWrite = (200 - 1)',
    why: 'The store gets the same counts in the same order; a write has one fewer.',
  },
  {
    file: 'src/keys/usage-detail.ts',
    before: 'if (i > 0) await setImmediate()',
    after: 'if (i > (0 + 1)) await setImmediate()',
    why: 'It is a multiple of the size of a write.',
  },
  {
    file: 'src/keys/window.ts',
    before: 'let [startsAt, endsAt] = [instant, nextMidnight(instant - 2 * utcDayMs)]',
    after: 'let [startsAt, endsAt] = [instant, nextMidnight(instant - (2 + 1) * utcDayMs)]',
    why: 'It begins a day earlier and goes on to the same day.',
  },
  {
    file: 'src/keys/rates.ts',
    before: '} else if (!isSame(rate.limits, limits)) {',
    after: '} else if (!isSame(limits, rate.limits)) {',
    why: 'Which of two is the first makes no difference.',
  },
  {
    file: 'src/keys/rates.ts',
    before: '...{ admittedLocally: 0, localParts: 1, next: undefined },',
    after: '...{ admittedLocally: 0, localParts: (1 + 1), next: undefined },',
    why: 'It divides only what was admitted locally, which sets it.',
  },
  {
    file: 'src/keys/rates.ts',
    before: "...bucket('second', perSecond, burst ?? perSecond ?? 0, 1_000),",
    after: "...bucket('second', perSecond, burst ?? perSecond ?? (0 + 1), 1_000),",
    why: 'Without a limit there is no bucket.',
  },
  {
    file: 'src/keys/rates.ts',
    before: "...bucket('minute', perMinute, perMinute ?? 0, minuteMs),",
    after: "...bucket('minute', perMinute, perMinute ?? (0 + 1), minuteMs),",
    why: 'Without a limit there is no bucket.',
  },
  {
    file: 'src/keys/rates.ts',
    before: 'bucket.tokens = Math.min(bucket.capacity, left[i] ?? 0)',
    after: 'bucket.tokens = Math.min(bucket.capacity, left[i] ?? (0 + 1))',
    why: 'A store says what is left of each bucket.',
  },
  {
    file: 'src/keys/rates.ts',
    before: "let longest: RateRefusal = { policy: 'second', limit: 0, waitMs: -1 }",
    after: "let longest: RateRefusal = { policy: 'second', limit: (0 + 1), waitMs: -1 }",
    why: 'The first bucket replaces it, because no wait is below 0.',
  },
  {
    file: 'src/keys/rates.ts',
    before: "...bucket('second', perSecond, burst ?? perSecond ?? 0, 1_000),",
    after: "...bucket('second', perSecond, burst ?? perSecond ?? (0 - 1), 1_000),",
    why: 'Without a limit there is no bucket.',
  },
  {
    file: 'src/keys/rates.ts',
    before: "...bucket('minute', perMinute, perMinute ?? 0, minuteMs),",
    after: "...bucket('minute', perMinute, perMinute ?? (0 - 1), minuteMs),",
    why: 'Without a limit there is no bucket.',
  },
  {
    file: 'src/keys/rates.ts',
    before: 'bucket.tokens = Math.min(bucket.capacity, left[i] ?? 0)',
    after: 'bucket.tokens = Math.min(bucket.capacity, left[i] ?? (0 - 1))',
    why: 'A store says what is left of each bucket.',
  },
  {
    file: 'src/keys/rates.ts',
    before: "let longest: RateRefusal = { policy: 'second', limit: 0, waitMs: -1 }",
    after: "let longest: RateRefusal = { policy: 'second', limit: (0 - 1), waitMs: -1 }",
    why: 'The first bucket replaces it, because no wait is below 0.',
  },
  {
    file: 'src/keys/rates.ts',
    before: "let longest: RateRefusal = { policy: 'second', limit: 0, waitMs: -1 }",
    after: "let longest: RateRefusal = { policy: 'second', limit: 0, waitMs: -(1 + 1) }",
    why: 'The first bucket replaces it, because no wait is below 0.',
  },
  {
    file: 'src/keys/rates.ts',
    before: 'const waitMs = Math.max(0, Math.round(missing / perMs))',
    after: 'const waitMs = Math.max((0 - 1), Math.round(missing / perMs))',
    why: 'Of a refusal one bucket is short, and its wait is not below 0.',
  },
  {
    file: 'src/keys/metering.ts',
    before:
      "const instances = store.kind === 'embedded' ? () => Math.max(processes, size.atMost() ?? 1) : size.atMost",
    after:
      "const instances = store.kind === 'embedded' ? () => Math.max(processes, size.atMost() ?? (1 - 1)) : size.atMost",
    why: 'There is one process at least.',
  },
  {
    file: 'src/keys/partition.ts',
    before: "...{ state: 'counting', isReported: true, reconciled: 0, losses: 0, readSince: 0 },",
    after: "...{ state: 'counting', isReported: true, reconciled: 0, losses: (0 + 1), readSince: 0 },",
    why: 'Losses are only told apart, and none of them has the number of the beginning.',
  },
  {
    file: 'src/keys/reconciliation.ts',
    before: 'this.#status.losses += 1',
    after: 'this.#status.losses -= 1',
    why: 'Losses are only told apart.',
  },
  {
    file: 'src/keys/reconciliation.ts',
    before: 'this.#status.losses += 1',
    after: 'this.#status.losses += (1 + 1)',
    why: 'Losses are only told apart.',
  },
  {
    file: 'src/keys/reconciliation.ts',
    before: 'this.#hasLostCounts ||= grants.some(({ before }, i) => before < (known[i] ?? 0))',
    after: 'this.#hasLostCounts ||= grants.some(({ before }, i) => before < (known[i] ?? (0 + 1)))',
    why: 'What was confirmed is known for each grant.',
  },
  {
    file: 'src/keys/reconciliation.ts',
    before: 'this.#hasLostCounts ||= grants.some(({ before }, i) => before < (known[i] ?? 0))',
    after: 'this.#hasLostCounts ||= grants.some(({ before }, i) => before < (known[i] ?? (0 - 1)))',
    why: 'What was confirmed is known for each grant.',
  },
  {
    file: 'src/keys/partition.ts',
    before: 'if (unknown.length > 0) await this.#reconciliation.read(unknown.map(({ count }) => count))',
    after: 'if (unknown.length >= 0) await this.#reconciliation.read(unknown.map(({ count }) => count))',
    why: 'A read of no counts sends nothing.',
  },
  {
    file: 'src/keys/partition.ts',
    before: 'if (unknown.length > 0) await this.#reconciliation.read(unknown.map(({ count }) => count))',
    after: 'if (unknown.length > (0 - 1)) await this.#reconciliation.read(unknown.map(({ count }) => count))',
    why: 'A read of no counts sends nothing.',
  },
  {
    file: 'src/keys/transfer.ts',
    before: 'const used = counts[i] ?? 0',
    after: 'const used = counts[i] ?? (0 + 1)',
    why: 'A store says how many units were used on each of the days.',
  },
  {
    file: 'src/keys/transfer.ts',
    before: 'const used = counts[i] ?? 0',
    after: 'const used = counts[i] ?? (0 - 1)',
    why: 'A store says how many units were used on each of the days.',
  },
  {
    file: 'src/keys/transfer.ts',
    before: "await announceChange(store, 'import', clock.now())",
    after: "await announceChange(store, '', clock.now())",
    why: 'The record only has to name no key and no subscriber.',
  },
  {
    file: 'src/keys/meter.ts',
    before: 'if (!this.#running || instant < this.#running.startsAt || instant >= this.#running.endsAt) {',
    after: 'if (!this.#running || instant <= this.#running.startsAt || instant >= this.#running.endsAt) {',
    why: 'At the first instant of the window the same one is found again.',
  },
  {
    file: 'src/api/key-endpoint.ts',
    before:
      'const used = counts ? (remaining > 0 ? limit - remaining : Math.max(limit, counts[0] ?? 0)) : null',
    after:
      'const used = counts ? (remaining > 0 ? limit - remaining : Math.max(limit, counts[0] ?? (0 - 1))) : null',
    why: 'A limit is larger than both.',
  },
  {
    file: 'src/api/connection/http2-response.ts',
    before: 'stream.cork()',
    after: ';',
    why: 'The same bytes go out, in one write or in several.',
  },
  {
    file: 'src/provider/spending-ledger.ts',
    before: '#backAt = 0',
    after: '#backAt = (0 - 1)',
    why: 'It is compared with instants of failures, which are of this century.',
  },
  {
    file: 'src/keys/meter.ts',
    before: '...{ lastKnown: undefined, knownSince: 0, heard: 0, pending: undefined },',
    after: '...{ lastKnown: undefined, knownSince: (0 + 1), heard: 0, pending: undefined },',
    why: 'It is read only where lastKnown is set, and whatever sets lastKnown sets it too.',
  },
  {
    file: 'src/provider/client.ts',
    before: 'let hasSent = false',
    after: 'let hasSent = true',
    why: 'A run sets it before it is read.',
  },
  {
    file: 'src/api/connection/pipeline.ts',
    before: 'let ofStrangers = 0',
    after: 'let ofStrangers = (0 - 1)',
    why: 'Of very many requests that may wait, one more may.',
  },
  {
    file: 'src/provider/queue.ts',
    before:
      'return Math.min(...[...this.#throttles.values()].map(({ cold }) => cold).filter(at => at > now))',
    after:
      'return Math.min(...[...this.#throttles.values()].map(({ cold }) => cold).filter(at => at >= now))',
    why: 'The cells of a consumer whose wait ends now were taken before.',
  },
  {
    file: 'src/api/connection/choose-writer.ts',
    before:
      "{ method: 'GET', status: 404, connection: closedLines, body: [Buffer.from('bo'), Buffer.from('dy')] },",
    after:
      "{ method: 'GET', status: 404, connection: closedLines, body: [Buffer.from(''), Buffer.from('dy')] },",
    why: 'A sample, which both writers get.',
  },
  {
    file: 'src/api/connection/choose-writer.ts',
    before: "{ method: 'GET', status: 200, connection: kept, body: [Buffer.from('body')] },",
    after: "{ method: '', status: 200, connection: kept, body: [Buffer.from('body')] },",
    why: 'A sample, which both writers get.',
  },
  {
    file: 'src/provider/open-meteo/decode-element.ts',
    before: 'return isOdd ? -1 : present',
    after: 'return isOdd ? -(1 + 1) : present',
    why: 'Only whether it is below 0 matters.',
  },
  {
    file: 'src/provider/window-counts.ts',
    before: 'count.consumers.set(consumer, Math.max(0, (count.consumers.get(consumer) ?? 0) + part))',
    after: 'count.consumers.set(consumer, Math.max((0 - 1), (count.consumers.get(consumer) ?? 0) + part))',
    why: 'What is given back was granted before.',
  },
  {
    file: 'src/api/joined-weather.ts',
    before: 'const problem = problemOf(error, 0)',
    after: 'const problem = problemOf(error, (0 - 1))',
    why: 'It only affects `retry-after`, which an element of a list does not have.',
  },
  {
    file: 'src/keys/meter.ts',
    before: "const newInstance = (): string => randomBytes(5).toString('hex')",
    after: "const newInstance = (): string => randomBytes((5 - 1)).toString('hex')",
    why: 'A name that is a little shorter is still the only one of its kind.',
  },
]
