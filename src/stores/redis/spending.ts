// The spending at the provider, in Redis: one counter per window, the instant until which the provider is closed, and its last
// reopening. All keys of one provider share a hash tag, so that a step over several windows stays in one slot of a cluster;
// every key has an expiry. A hash per window has the count of each consumer. A counter that is missing or unreadable restarts at what the calling gateway knows; an impossible closure is removed.

import type { Result } from 'ioredis'
import { safeText } from '../../outside-text.ts'
import { unshared } from '../fair-share.ts'
import { keepReopeningForMs, longestClosureMs, longestReason, shown, wholeFrom } from '../records.ts'
import type { SpendingStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { readLua, reserveScript, settleScript } from './spending-scripts.ts'

// KEYS: closed, reopened, reason. ARGV: until, keepUntil, the longest closure, now, the reopening that the caller knows or
// nothing, and the reason. Returns the last reopening.
const closeScript = `${readLua}
local till, longest, known = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[5])
local reopened, failure = reopenedAt(KEYS[2], tonumber(ARGV[4]), longest)
if failure then return failure end
if known and reopened > known then return reopened end
local value
value, failure = textAt(KEYS[1])
if failure then return failure end
local before = whole(value)
if not before or before < till or before > till + longest then
  call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
  call('SET', KEYS[3], ARGV[6], 'PXAT', ARGV[2])
end
return reopened`

// Lua at the end of a script with KEYS closed, reopened, reason: the closure, the reason and the last reopening.
const closureLua = `
local value, failure = textAt(KEYS[1])
if failure then return failure end
local closed = whole(value) or 0
local reason = pcall('GETRANGE', KEYS[3], 0, ${4 * longestReason})
if type(reason) == 'table' then
  if not isOtherType(reason) then return reason end
  reason = ''
end`

// ARGV: now, the longest closure, and how long the reopening is kept.
const reopenScript = `${readLua}${closureLua}
local now = tonumber(ARGV[1])
local last
last, failure = reopenedAt(KEYS[2], now, tonumber(ARGV[2]))
if failure then return failure end
local at = math.max(last + 1, now)
call('DEL', KEYS[1])
call('DEL', KEYS[3])
call('SET', KEYS[2], text('%d', at), 'PXAT', text('%d', at + tonumber(ARGV[3])))
return { closed, reason, at }`

// ARGV: nothing.
const closureScript = `${readLua}${closureLua}
value, failure = textAt(KEYS[2])
if failure then return failure end
return { closed, reason, whole(value) or 0 }`

// KEYS: closed, windows, reopened. Returns the text of each that is a whole number, nothing for one that is missing, and \`-\`
// for another.
const spendingScript = `${readLua}
local reply = {}
for i = 1, #KEYS do
  local value, failure = textAt(KEYS[i])
  if failure then return failure end
  reply[i] = whole(value) and value or '-'
  if value == '0' and call('EXISTS', KEYS[i]) == 0 then reply[i] = '' end
end
return reply`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaReserve(
      keys: number,
      ...keysAndValues: (string | number)[]
    ): Result<[counts: number[], repaired: number[], claims: number[]], Context>
    abohawaSettle(keys: number, ...keysAndValues: (string | number)[]): Result<null, Context>
    abohawaClose(
      closed: string,
      reopened: string,
      reason: string,
      ...values: (string | number)[]
    ): Result<number, Context>
    abohawaReopen(
      closed: string,
      reopened: string,
      reason: string,
      now: number,
      longestClosureMs: number,
      keepForMs: number,
    ): Result<[closed: number, reason: string, reopened: number], Context>
    abohawaClosure(
      closed: string,
      reopened: string,
      reason: string,
    ): Result<[closed: number, reason: string, reopened: number], Context>
    abohawaSpending(keys: number, ...keyNames: string[]): Result<string[], Context>
  }
}

// Callers compare the instant with their own clock; the key expires a little later, in case the server's clock is fast.
const keepClosedForMs = 3_600_000

/** The spending of a store on this connection. */
export const redisSpending = ({
  redis,
  names,
  attempt,
  observer,
}: RedisParts): Omit<SpendingStore, 'onLost'> => {
  redis.defineCommand('abohawaReserve', { lua: reserveScript })
  redis.defineCommand('abohawaSettle', { lua: settleScript })
  redis.defineCommand('abohawaClose', { numberOfKeys: 3, lua: closeScript })
  redis.defineCommand('abohawaReopen', { numberOfKeys: 3, lua: reopenScript })
  redis.defineCommand('abohawaClosure', { numberOfKeys: 3, lua: closureScript })
  redis.defineCommand('abohawaSpending', { lua: spendingScript })
  const closureKeys = (provider: string): [closed: string, reopened: string, reason: string] => [
    names.closedUntil(provider),
    names.reopenedAt(provider),
    names.closedBecause(provider),
  ]
  const refuse = (name: string, fault: string) =>
    observer.recordRefused({ record: 'spending', name: shown(name), fault })

  return {
    reserve: ({ provider, windows, wanted, claims = [], unit, now }) =>
      attempt(async () => {
        const keys = [
          names.closedUntil(provider),
          ...windows.map(({ name }) => names.spending(provider, name)),
          ...windows.map(({ name }) => names.spendingByConsumer(provider, name)),
          names.reopenedAt(provider),
        ]
        const bounds = windows.flatMap(({ limit, keepUntil, known = 0, shares }) => {
          const { open, share, paced, little } = shares ?? unshared(limit)
          return [limit, keepUntil, known, open, share, paced, little]
        })
        const [counts, repaired, claimed] = await redis.abohawaReserve(
          keys.length,
          ...keys,
          wanted,
          unit,
          now,
          longestClosureMs,
          ...bounds,
          ...claims.flatMap(({ consumer, wanted: units }) => [consumer, units]),
        )
        for (const number of repaired)
          refuse(keys[number - 1] ?? '', 'it was missing or not readable, and was restarted')
        const [granted = 0, closed = 0, ...rest] = counts.map(wholeFrom)
        return {
          granted,
          closedUntil: closed || null,
          reopenedAt: rest.at(-1) ?? 0,
          used: rest.slice(0, windows.length),
          claims: claims.map((_, i) => ({
            granted: wholeFrom(claimed[2 * i]),
            heldIn: positionsIn(wholeFrom(claimed[2 * i + 1]), windows.length),
          })),
        }
      }),
    settle: ({ provider, changes }) =>
      attempt(async () => {
        if (changes.length === 0) return
        const keys = [
          ...changes.map(({ name }) => names.spending(provider, name)),
          ...changes.map(({ name }) => names.spendingByConsumer(provider, name)),
        ]
        const consumers = new Set(
          changes.flatMap(({ consumers: parts = [] }) => parts.map(part => part.consumer)),
        )
        const partOf = (consumer: string, { consumers: parts = [] }: (typeof changes)[number]): number =>
          parts.find(part => part.consumer === consumer)?.by ?? 0
        await redis.abohawaSettle(
          keys.length,
          ...keys,
          changes.length,
          ...changes.flatMap(({ by, atLeast = '', keepUntil }) => [by, atLeast, keepUntil]),
          ...[...consumers].flatMap(consumer => [
            consumer,
            ...changes.map(change => partOf(consumer, change)),
          ]),
        )
      }),
    closeUntil: (provider, until, { now, reopenedAt, reason }) =>
      attempt(async () =>
        wholeFrom(
          await redis.abohawaClose(
            ...closureKeys(provider),
            until,
            until + keepClosedForMs,
            longestClosureMs,
            now,
            reopenedAt ?? '',
            safeText(reason, longestReason),
          ),
        ),
      ),
    reopen: (provider, now) =>
      attempt(async () =>
        closureOf(
          await redis.abohawaReopen(...closureKeys(provider), now, longestClosureMs, keepReopeningForMs),
        ),
      ),
    closure: provider => attempt(async () => closureOf(await redis.abohawaClosure(...closureKeys(provider)))),
    spending: (provider, windows) =>
      attempt(async () => {
        const keys = [
          names.closedUntil(provider),
          ...windows.map(name => names.spending(provider, name)),
          names.reopenedAt(provider),
        ]
        const texts = await redis.abohawaSpending(keys.length, ...keys)
        texts.forEach((text, i) => {
          if (text === '-') refuse(keys[i] ?? '', 'it is not a whole number')
        })
        const [closed, ...rest] = texts.map(text =>
          text === '-' ? null : text ? wholeFrom(text) : undefined,
        )
        return {
          used: rest.slice(0, windows.length),
          closedUntil: closed || null,
          reopenedAt: rest.at(-1) ?? 0,
        }
      }),
  }
}

/** The positions of the bits that are set. */
const positionsIn = (bits: number, length: number): number[] =>
  Array.from({ length }, (_, i) => i).filter(i => bits & (1 << i))

const closureOf = ([closed, reason, reopened]: [closed: number, reason: string, reopened: number]) => ({
  closedUntil: wholeFrom(closed) || null,
  reason: safeText(reason, longestReason) || null,
  reopenedAt: wholeFrom(reopened),
})
