// The state of the fleet in Redis: heartbeats, names in demand, and logs of change records. All of it is bounded. A record of
// another Redis type is an error of the step that meets it.

import { utcDayMs } from '../../common/calendar.ts'
import {
  checkChangeRecord,
  longestReport,
  maxChangeRecords,
  maxInstances,
  maxWanted,
  maxWantedRead,
  wholeFrom,
} from '../records.ts'
import type { ChangeRecord, FleetStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { namesLua, pairsOf, redisTime, scriptOn } from './server.ts'

// The clock of Redis, so that no instance is dead or alive by the clock of another one's machine.
const nowLua = `${namesLua}
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
`

// The number of a change record is its score: the time in ms, so that a log that was lost or restored without its end never
// assigns a number again that an instance has read. A number of a clock that is a day ahead is not followed.
const appendScript = `${nowLua}
local last = call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local above = math.min(tonumber(ARGV[4]), now + ${utcDayMs} - 1)
local number = math.max(floor(tonumber(last[2] or '0')) + 1, now, above + 1)
call('ZADD', KEYS[1], text('%d', number), text('%d ', number) .. ARGV[1])
call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
call('PEXPIREAT', KEYS[1], ARGV[2])
return number`

// Drops the members whose score, the instant of their last heartbeat, is too long ago.
const keepAliveLua = (aliveForMs: string): string => `
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text('%d', now - ${aliveForMs}))
call('PEXPIRE', KEYS[1], text('%d', 2 * ${aliveForMs}))`

// ARGV: the instance, and how long it counts as alive. Returns how many are alive.
const aliveScript = `${nowLua}
call('ZADD', KEYS[1], text('%d', now), ARGV[1])
${keepAliveLua('ARGV[2]')}
return call('ZCARD', KEYS[1])`

// A member is the settings and the instance that runs with them. ARGV: the member, empty for an instance that stops, the
// instance, and how long it counts as alive. Returns how many different settings there are.
const settingsScript = `${nowLua}
if ARGV[1] ~= '' then call('ZADD', KEYS[1], text('%d', now), ARGV[1]) end
${keepAliveLua('ARGV[3]')}
local members, seen, variants = call('ZRANGE', KEYS[1], 0, -1), {}, 0
for i = 1, #members do
  local settings, instance = string.match(members[i], '^(%S*) ?(.*)$')
  if instance == ARGV[2] and members[i] ~= ARGV[1] then
    call('ZREM', KEYS[1], members[i])
  elseif not seen[settings] then
    seen[settings] = true
    variants = variants + 1
  end
end
return variants`

const namesPerCommand = 1_000

export const redisFleet = ({ redis, names }: RedisParts): FleetStore => {
  const append = scriptOn<number>(redis, 'abohawaAppend', 1, appendScript)
  const countSettings = scriptOn<number>(redis, 'abohawaSettings', 1, settingsScript)
  const alive = scriptOn<number>(redis, 'abohawaAlive', 1, aliveScript)

  const want = async (
    topic: string,
    requested: readonly string[],
    forMs: number,
    now: number,
  ): Promise<number> => {
    const name = names.wanted(topic)
    const added: Promise<unknown>[] = []
    for (let i = 0; i < requested.length; i += namesPerCommand)
      added.push(redis.zadd(name, ...requested.slice(i, i + namesPerCommand).flatMap(each => [now, each])))
    const [, , wanted] = await Promise.all([
      redis.zremrangebyscore(name, '-inf', now - forMs),
      redis.zremrangebyrank(name, 0, -1 - maxWanted),
      redis.zcard(name),
      redis.pexpire(name, forMs * 2),
      ...added,
    ])
    return wanted
  }

  const reportOf = async (instance: string): Promise<string | undefined> => {
    const text = await redis.getrange(names.instance(instance), 0, longestReport)
    return text === '' || Buffer.byteLength(text) > longestReport ? undefined : text
  }

  return {
    heartbeat: async ({ instance, aliveForMs, settings, topic, requested, wantedForMs, now, report }) => {
      const member = settings === null ? '' : `${settings} ${instance}`
      const [instances, variants, wanted] = await Promise.all([
        alive(names.instances, instance, aliveForMs),
        countSettings(names.settings, member, instance, aliveForMs),
        want(topic, requested, wantedForMs, now),
        redis.set(names.instance(instance), report, 'PX', aliveForMs * 2),
      ])
      return { instances, variants, wanted }
    },
    leave: async instance => void (await redis.zrem(names.instances, instance)),
    aliveInstances: async aliveForMs => {
      const now = Math.floor(await redisTime(redis))
      const since = now - aliveForMs
      const latest = ['+inf', since, 'WITHSCORES', 'LIMIT', 0, maxInstances] as const
      const found = await redis.zrevrangebyscore(names.instances, ...latest)
      return Promise.all(
        pairsOf(found).map(async ([id, at]) => ({
          id,
          silentForMs: Math.max(0, now - wholeFrom(at)),
          report: await reportOf(id),
        })),
      )
    },
    wanted: (topic, since) =>
      redis.zrevrangebyscore(names.wanted(topic), '+inf', since, 'LIMIT', 0, maxWantedRead),
    appendChangeRecord: async (topic, text, keepUntil, above = 0) => {
      checkChangeRecord(text)
      return append(names.changeRecords[topic], text, keepUntil, maxChangeRecords, above)
    },
    changeRecordsAfter: async (topic, number) => {
      const found = await redis.zrangebyscore(names.changeRecords[topic], number, '+inf', 'WITHSCORES')
      // The text begins with the number and a blank.
      const records = pairsOf(found).map(([text, score]) => ({
        number: wholeFrom(score),
        text: text.replace(/^\d+ /, ''),
      }))
      return splitAt(number, records)
    },
  }
}

// Records are dropped from the oldest on, so where one is still there, all after it are.
const splitAt = (number: number, records: ChangeRecord[]): { records: ChangeRecord[]; complete: boolean } => {
  if (number === 0) return { records, complete: records.length < maxChangeRecords }
  const [first, ...later] = records
  return first?.number === number ? { records: later, complete: true } : { records, complete: false }
}
