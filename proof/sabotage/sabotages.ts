// Faults that are planted in the product, one at a time, to see whether the checker finds them: a text of one file and what
// replaces it, and which promises it breaks.

import type { PromiseNumber } from '../promises.ts'

export type Sabotage = {
  /** What the fault is. */
  readonly name: string
  readonly file: string
  readonly text: string
  readonly replacement: string
  /** The promises of which it breaks at least one. */
  readonly promise: readonly PromiseNumber[]
}

export const sabotages: readonly Sabotage[] = [
  {
    name: 'a hard purge is lost',
    file: 'src/cache/purge-log.ts',
    text: 'purges.add(purge)',
    replacement: "if (purge.kind === 'soft') purges.add(purge)",
    promise: [15],
  },
  {
    name: 'all bodies have one tag',
    file: 'src/api/representation.ts',
    text: "hash('sha256', bytes, 'base64url').slice(0, tagLength)",
    replacement: "'A'.repeat(tagLength)",
    promise: [5],
  },
  {
    name: 'a revoked key is accepted',
    file: 'src/keys/authentication.ts',
    text: "if (found.key.revokedAt !== null) return { refusal: 'key-revoked', keyId }",
    replacement: '',
    promise: [10],
  },
  {
    name: 'the hours begin an hour early',
    file: 'src/api/answer.ts',
    text: 'text.hourly(timeline, readAt, hourlyHours)',
    replacement: 'text.hourly(timeline, readAt - 3_600_000, hourlyHours)',
    promise: [4],
  },
  {
    name: 'a limit is a request higher',
    file: 'src/keys/authentication.ts',
    text: 'client: { keyId, subscriberId, tier, limit } }',
    replacement: 'client: { keyId, subscriberId, tier, limit: limit + 1 } }',
    promise: [2, 6, 7, 11],
  },
  {
    name: 'the budget grants whatever is wanted',
    file: 'src/stores/redis/spending.ts',
    text: 'grant = math.min(grant, math.max(0, floor(room / unit) * unit))',
    replacement: '',
    promise: [12],
  },
  {
    name: 'the quota ends at midnight UTC',
    file: 'src/keys/metering.ts',
    text: 'resetAfter: meter.resetAfter',
    replacement: 'resetAfter: (instant: number) => (Math.floor(instant / 86_400_000) + 1) * 86_400_000',
    promise: [9],
  },
  {
    name: 'the weather of the cell to the north',
    file: 'src/api/answer.ts',
    text: 'grid.cellOf(latitude, longitude)',
    replacement: 'grid.cellOf(latitude + 0.25, longitude)',
    promise: [3],
  },
  {
    name: 'each gateway takes all that is left as its allowance',
    file: 'src/keys/outage.ts',
    text: 'Math.floor((limit - lastKnown - 2 * stepOf(limit)) / instances)',
    replacement: 'limit - lastKnown + instances * 0',
    promise: [6],
  },
  {
    name: 'a batch is counted twice',
    file: 'src/stores/redis/usage-scripts.ts',
    text: 'used = used + granted',
    replacement: 'used = used + granted + granted',
    promise: [7, 8],
  },
  {
    name: 'what Redis lost is not counted again',
    file: 'src/stores/redis/usage-scripts.ts',
    text: 'local used = before + admitted - mine',
    replacement: 'local used = before + (value and admitted - mine or 0)',
    promise: [6, 8],
  },
  {
    name: 'units admitted in an outage are reported as nothing',
    file: 'src/keys/outage.ts',
    text: 'count.admitted += 1\n',
    replacement: '\n',
    promise: [6, 8],
  },
  {
    name: 'remaining is that of before the request',
    file: 'src/keys/meter.ts',
    text: 'limit - (used - granted) - i - 1',
    replacement: 'limit - (used - granted) - i',
    promise: [7, 8],
  },
  {
    name: 'every tag is taken for the present one',
    file: 'src/api/representation.ts',
    text: 'ifNoneMatch !== undefined && matches(ifNoneMatch, tag)',
    replacement: 'ifNoneMatch !== undefined && (matches(ifNoneMatch, tag) || true)',
    promise: [5],
  },
  {
    name: 'stale weather is served as long as its timeline lasts',
    file: 'src/cache/freshness.ts',
    text: 'Math.min(freshUntil(entry, now) + options.staleForMs, entry.fetchedAt + longest, endOf(entry))',
    replacement: 'freshUntil(entry, now) + 48 * 3_600_000',
    promise: [3],
  },
  {
    name: 'weather says that it was fetched at the request',
    file: 'src/api/rendered-weather.ts',
    text: 'Math.min(fetchedAt, readAt)',
    replacement: 'readAt',
    promise: [3],
  },
  {
    name: 'the circuit stays open',
    file: 'src/provider/breaker.ts',
    text: 'halfOpenAt = performance.now() + waitMs',
    replacement: 'halfOpenAt = performance.now() + waitMs * 1e6',
    promise: [13],
  },
  {
    name: 'the points of a batch are mixed up',
    file: 'src/provider/open-meteo/query.ts',
    text: 'cells.map(cell => cell.longitude)',
    replacement: 'cells.toReversed().map(cell => cell.longitude)',
    promise: [3, 13],
  },
  {
    name: 'a minute of the budget has half a minute',
    file: 'src/provider/spending-windows.ts',
    text: 'minute: minuteMs, hour',
    replacement: 'minute: minuteMs / 2, hour',
    promise: [12],
  },
  {
    name: 'what was spent is given back',
    file: 'src/provider/budget.ts',
    text: 'by: costIn(window) - weight }',
    replacement: 'by: -weight }',
    promise: [12],
  },
  {
    name: 'changes of keys are not taken over',
    file: 'src/keys/key-directory.ts',
    text: 'evict(({ key, subscriber }) => changed.has(key.id) || changed.has(subscriber.id))',
    replacement: 'evict(() => false)',
    promise: [10, 11],
  },
  {
    name: 'midnight comes by the clock of each gateway',
    file: 'src/keys/metering.ts',
    text: 'offset.ms = agrees ? 0 : Math.round(storeTime - (sentAt + receivedAt) / 2)',
    replacement: 'offset.ms = agrees ? 0 : 0',
    promise: [9],
  },
  {
    name: 'what is counted on a full disk is lost',
    file: 'src/stores/sqlite/reserve.ts',
    text: "write(Buffer.from((texts[i] ?? '').padEnd(slotBytes)), slot * slotBytes)",
    replacement: '',
    promise: [7, 8],
  },
  {
    name: 'places keep the names of the former catalogue',
    file: 'src/api/places.ts',
    text: 'if (from !== catalogue.current) {',
    replacement: 'if (!from) {',
    promise: [16],
  },
  {
    name: 'a renewed certificate is not served',
    file: 'src/api/api.ts',
    text: ';(app.server as TlsServer).setSecureContext(next)',
    replacement: '',
    promise: [16],
  },
  {
    name: 'with `refuse` nobody looks whether Redis lost counts',
    file: 'src/keys/outage.ts',
    text: 'onLoss()\n      // Requests may wait for it.',
    replacement: "if (whenStoreIsDown === 'share') onLoss()",
    promise: [6, 7, 8],
  },
]
