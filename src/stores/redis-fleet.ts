// What the instances of a fleet tell one another through Redis: that they are alive, what they were asked for, and
// notices in the order they were given. All of it is bounded, and none of it is worth an error: a list that can't be ours
// is thrown away, and what was in it is said again by those who are alive.

import type { Result } from 'ioredis'
import { utcDayMs } from '../calendar.ts'
import {
  clockToleranceMs,
  longestName,
  longestNotice,
  mostInstances,
  mostNotices,
  mostWanted,
  mostWantedRead,
  type RecordKind,
  shown,
  wholeFrom,
  wholeIn,
} from './records.ts'
import type { RedisParts } from './redis-connection.ts'
import { onOwnType, recordsLua } from './redis-records.ts'
import { type FleetStore, type Notice, StoreError } from './store.ts'

// A number further ahead of the store's clock was given by nobody: clocks that differ and lists that came back account for
// less. It is thrown away, because all that come after it would have to be greater.
const ownNumbersLua = `
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local size = pcall('ZCARD', KEYS[1])
if type(size) == 'table' then
  if not isOtherType(size) then return size end
  call('DEL', KEYS[1])
end
local gone = (type(size) == 'table' and 1 or 0)
  + call('ZREMRANGEBYSCORE', KEYS[1], text('(%d', now + ${utcDayMs}), '+inf')`

// The number of a notice is its score: the time, so that a list which was lost, or came back without its end, never gives
// a number again that somebody has seen already.
const appendScript = `${recordsLua}${ownNumbersLua}
local last = call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local number = math.max(floor(tonumber(last[2] or '0') or 0) + 1, now)
call('ZADD', KEYS[1], text('%d', number), text('%d ', number) .. ARGV[1])
call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
call('PEXPIREAT', KEYS[1], ARGV[2])
return { number, gone }`

// ARGV: the number to begin at, the most notices, and the longest text. Answers how many were thrown away, then number and
// text by turns. The texts that are read here and are too long are never sent.
const noticesScript = `${recordsLua}${ownNumbersLua}
call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[2]))
local found = call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES')
local reply = { 0 }
for i = 1, #found, 2 do
  if whole(found[i + 1]) and #found[i] <= tonumber(ARGV[3]) then
    reply[#reply + 1] = found[i + 1]
    reply[#reply + 1] = found[i]
  else
    gone = gone + call('ZREM', KEYS[1], found[i])
  end
end
reply[1] = gone
return reply`

// ARGV: the instant from which on, the most names, and the longest. Read in pieces, so that large ones are never all in
// hand; a name that is too long is removed.
const wantedScript = `${recordsLua}
local names, long, at = { 0 }, {}, 0
while at < tonumber(ARGV[2]) do
  local part = call('ZREVRANGEBYSCORE', KEYS[1], '+inf', ARGV[1], 'LIMIT', at, 500)
  if #part == 0 then break end
  for i = 1, #part do
    if #part[i] <= tonumber(ARGV[3]) then names[#names + 1] = part[i] else long[#long + 1] = part[i] end
  end
  at = at + #part
  if #long > 500 then break end
end
for i = 1, #long do call('ZREM', KEYS[1], long[i]) end
names[1] = #long
return names`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaAppend(key: string, text: string, keepUntil: number, most: number): Result<number[], Context>
    abohawaNotices(
      key: string,
      number: number,
      most: number,
      longest: number,
    ): Result<(number | string)[], Context>
    abohawaWanted(
      key: string,
      since: number,
      most: number,
      longest: number,
    ): Result<(number | string)[], Context>
  }
}

const namesPerCommand = 1_000

export const redisFleet = ({ redis, names, attempt, observer }: RedisParts): FleetStore => {
  redis.defineCommand('abohawaAppend', { numberOfKeys: 1, lua: appendScript })
  redis.defineCommand('abohawaNotices', { numberOfKeys: 1, lua: noticesScript })
  redis.defineCommand('abohawaWanted', { numberOfKeys: 1, lua: wantedScript })
  const ownType = onOwnType(redis, observer)
  const refuse = (record: RecordKind, name: string, fault: string): void =>
    observer.recordRefused({ record, name: shown(name), fault })
  const refuseSome = (record: RecordKind, name: string, count: number, why: string): void => {
    if (count > 0) refuse(record, name, `${count} of its members ${why}`)
  }

  // How many were alive when the set was last believed, and until when that stands in for a set that was thrown away.
  let believed = { instances: 1, until: 0 }
  const beat = async (instance: string, aliveForMs: number, now: number): Promise<number> => {
    const name = names.instances
    const [, , ahead = 0, alive = 0] = await Promise.all([
      redis.zadd(name, now, instance),
      redis.zremrangebyscore(name, '-inf', now - aliveForMs),
      redis.zremrangebyscore(name, `(${now + clockToleranceMs}`, '+inf'),
      redis.zcard(name),
      redis.pexpire(name, aliveForMs * 2),
    ])
    refuseSome('instances', name, ahead, 'are of the future, and were removed')
    if (alive > mostInstances) {
      // Whoever is alive says so again within seconds.
      await redis.unlink(name)
      await redis.zadd(name, now, instance)
      await redis.pexpire(name, aliveForMs * 2)
      believed = { ...believed, until: now + aliveForMs }
      refuse('instances', name, `it has ${alive} members, and was begun anew`)
      return believed.instances
    }
    if (alive > believed.instances || now >= believed.until) believed = { instances: alive, until: 0 }
    return Math.max(1, believed.instances)
  }
  const want = async (
    topic: string,
    asked: readonly string[],
    forMs: number,
    now: number,
  ): Promise<number> => {
    const name = names.wanted(topic)
    const added: Promise<unknown>[] = []
    for (let i = 0; i < asked.length; i += namesPerCommand)
      added.push(redis.zadd(name, ...asked.slice(i, i + namesPerCommand).flatMap(each => [now, each])))
    const [, ahead, surplus, wanted] = await Promise.all([
      redis.zremrangebyscore(name, '-inf', now - forMs),
      redis.zremrangebyscore(name, `(${now + clockToleranceMs}`, '+inf'),
      redis.zremrangebyrank(name, 0, -1 - mostWanted),
      redis.zcard(name),
      redis.pexpire(name, forMs * 2),
      ...added,
    ])
    refuseSome('wanted', name, ahead, 'are of the future, and were removed')
    refuseSome('wanted', name, surplus, `are beyond ${mostWanted}, and were removed`)
    return wanted
  }

  return {
    pulse: ({ instance, aliveForMs, topic, asked, wantedForMs, now }) =>
      attempt(async () => {
        const [instances, wanted] = await Promise.all([
          ownType('instances', names.instances, () => beat(instance, aliveForMs, now)),
          ownType('wanted', names.wanted(topic), () => want(topic, asked, wantedForMs, now)),
        ])
        return { instances: wholeFrom(instances), wanted: wholeFrom(wanted) }
      }),
    wanted: (topic, since) =>
      attempt(() => {
        const name = names.wanted(topic)
        return ownType('wanted', name, async () => {
          const [tooLong, ...found] = await redis.abohawaWanted(name, since, mostWantedRead, longestName)
          refuseSome(
            'wanted',
            name,
            Number(tooLong),
            `are longer than ${longestName} bytes, and were removed`,
          )
          return found.map(String)
        })
      }),
    appendNotice: (topic, text, keepUntil) =>
      attempt(async () => {
        const length = Buffer.byteLength(text)
        if (length > longestNotice)
          throw new StoreError(`a notice has ${length} bytes; allowed: ${longestNotice}`)
        const name = names.notices(topic)
        const [number, gone] = await redis.abohawaAppend(name, text, keepUntil, mostNotices)
        refuseSome('notices', name, Number(gone), notOurs)
        return wholeFrom(number)
      }),
    noticesAfter: (topic, number) =>
      attempt(async () => {
        const name = names.notices(topic)
        // With the time before its text.
        const longest = longestNotice + 20
        const [gone, ...found] = await redis.abohawaNotices(name, number, mostNotices, longest)
        refuseSome('notices', name, Number(gone), notOurs)
        const notices = Array.from({ length: found.length / 2 }, (_, i) => ({
          number: wholeIn(String(found[2 * i])) ?? 0,
          text: String(found[2 * i + 1]).replace(/^\d+ /, ''),
        }))
        return splitAt(number, notices)
      }),
  }
}

const notOurs = 'have a number or a length that no notice has, and were removed'

// Notices leave the list at its beginning only, so where one is still there all after it are.
const splitAt = (number: number, notices: Notice[]): { notices: Notice[]; complete: boolean } => {
  if (number === 0) return { notices, complete: notices.length < mostNotices }
  const [first, ...later] = notices
  return first?.number === number ? { notices: later, complete: true } : { notices, complete: false }
}
