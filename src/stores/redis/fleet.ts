// The state of the fleet in Redis: heartbeats, names in demand, and logs of change records. All of it is bounded. Invalid
// records are deleted without an error, because live instances write them again.

import { utcDayMs } from '../../common/calendar.ts'
import { clockToleranceMs } from '../../common/clock.ts'
import {
  longestChangeRecord,
  longestName,
  longestReport,
  maxChangeRecords,
  maxInstances,
  maxWanted,
  maxWantedRead,
  type RecordKind,
  shown,
  wholeFrom,
} from '../records.ts'
import { type ChangeRecord, type FleetStore, StoreError } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { isWrongType, namesLua, onOwnType, pairsOf, recordsLua, scriptOn } from './records.ts'

// The clock of Redis, so that no instance is dead or alive by the clock of another one's machine.
const nowLua = `
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
`

// No valid number is more than a day ahead of the store's clock. Such a record is deleted, because every later number would
// have to be greater.
const ownNumbersLua = `${nowLua}
local size = pcall('ZCARD', KEYS[1])
if type(size) == 'table' then
  if not isOtherType(size) then return size end
  call('DEL', KEYS[1])
end
local gone = (type(size) == 'table' and 1 or 0)
  + call('ZREMRANGEBYSCORE', KEYS[1], text('(%d', now + ${utcDayMs}), '+inf')`

// The number of a change record is its score: the time in ms, so that a log that was lost or restored without its end never
// assigns a number again that an instance has read.
const appendScript = `${recordsLua}${ownNumbersLua}
local last = call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local above = math.min(tonumber(ARGV[4]), now + ${utcDayMs} - 1)
local number = math.max(floor(tonumber(last[2] or '0') or 0) + 1, now, above + 1)
call('ZADD', KEYS[1], text('%d', number), text('%d ', number) .. ARGV[1])
call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
call('PEXPIREAT', KEYS[1], ARGV[2])
return { number, gone }`

// ARGV: the number to begin at, the most records, and the longest text. Returns how many records were deleted, then number and
// text in turn. Texts that are too long are deleted, not returned.
const changeRecordsScript = `${recordsLua}${ownNumbersLua}
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

// ARGV: the earliest instant, the most names, and the longest name. Reads in pages, which bounds memory; deletes names that are
// too long.
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

// Lua that drops the members of a set of heartbeats that are not alive. A score is the instant of the last heartbeat. Keeps those
// a little ahead: an earlier version wrote the clock of its machine, and the clock of Redis goes back with another server.
const keepAliveLua = (aliveForMs: string): string => `
local aliveForMs = tonumber(${aliveForMs})
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text('%d', now - aliveForMs))
local ahead = call('ZREMRANGEBYSCORE', KEYS[1], text('(%d', now + ${clockToleranceMs}), '+inf')
call('PEXPIRE', KEYS[1], 2 * aliveForMs)`

// ARGV: the instance, and how long it counts as alive. Returns how many members were deleted as in the future, how many are
// alive, and now. A set with too many begins again.
const aliveScript = `${namesLua}${nowLua}
call('ZADD', KEYS[1], text('%d', now), ARGV[1])
${keepAliveLua('ARGV[2]')}
local alive = call('ZCARD', KEYS[1])
if alive > ${maxInstances} then
  call('UNLINK', KEYS[1])
  call('ZADD', KEYS[1], text('%d', now), ARGV[1])
  call('PEXPIRE', KEYS[1], 2 * aliveForMs)
end
return { ahead, alive, now }`

// ARGV: how long after its heartbeat an instance counts as alive. Returns how many names were deleted as too long, then each name
// and how long ago its heartbeat was.
const instancesScript = `${namesLua}${nowLua}
local since = text('%d', now - tonumber(ARGV[1]))
local found = call('ZREVRANGEBYSCORE', KEYS[1], '+inf', since, 'WITHSCORES', 'LIMIT', 0, ${maxInstances})
local reply, long = { 0 }, 0
for i = 1, #found, 2 do
  if #found[i] > ${longestName} then
    long = long + call('ZREM', KEYS[1], found[i])
  else
    reply[#reply + 1], reply[#reply + 2] = found[i], text('%d', math.max(0, now - tonumber(found[i + 1])))
  end
end
reply[1] = long
return reply`

// A member is the settings and the instance that runs with them. ARGV: the member, empty for an instance that stops, the
// instance, and how long it counts as alive. Returns how many members were deleted as surplus, and how many different settings
// there are.
const settingsScript = `${namesLua}${nowLua}
if ARGV[1] ~= '' then call('ZADD', KEYS[1], text('%d', now), ARGV[1]) end
${keepAliveLua('ARGV[3]')}
local surplus = call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ${maxInstances})
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
return { surplus, variants }`

const namesPerCommand = 1_000

export const redisFleet = ({ redis, names, observer }: RedisParts): FleetStore => {
  type Reply = (number | string)[]
  const runAppend = scriptOn<number[]>(redis, 'abohawaAppend', 1, appendScript)
  const readChangeRecords = scriptOn<Reply>(redis, 'abohawaChangeRecords', 1, changeRecordsScript)
  const runSettings = scriptOn<number[]>(redis, 'abohawaSettings', 1, settingsScript)
  const runAlive = scriptOn<number[]>(redis, 'abohawaAlive', 1, aliveScript)
  const readInstances = scriptOn<Reply>(redis, 'abohawaInstances', 1, instancesScript)
  const readWanted = scriptOn<Reply>(redis, 'abohawaWanted', 1, wantedScript)
  const ownType = onOwnType(redis, observer)
  const refuse = (record: RecordKind, name: string, fault: string): void =>
    observer.recordRefused({ record, name: shown(name), fault })
  const refuseSome = (record: RecordKind, name: string, count: number, why: string): void => {
    if (count > 0) refuse(record, name, `${count} of its members ${why}`)
  }

  const wantedSince = async (name: string, since: number): Promise<string[]> => {
    const [tooLong, ...found] = await readWanted(name, since, maxWantedRead, longestName)
    refuseSome('wanted', name, Number(tooLong), namesTooLong)
    return found.map(String)
  }

  // The last valid number of instances, and until when it stands in for a set that was deleted.
  let believed = { instances: 1, until: 0 }
  const heartbeat = async (instance: string, aliveForMs: number): Promise<number> => {
    const name = names.instances
    const [ahead = 0, alive = 0, now = 0] = await runAlive(name, instance, aliveForMs)
    refuseSome('instances', name, ahead, 'are in the future, and were removed')
    if (alive > maxInstances) {
      // Live instances send their next heartbeat within seconds.
      believed = { ...believed, until: now + aliveForMs }
      refuse('instances', name, `it has ${alive} members, and was reset`)
      return believed.instances
    }
    if (alive > believed.instances || now >= believed.until) believed = { instances: alive, until: 0 }
    return Math.max(1, believed.instances)
  }
  const report = async (instance: string, settings: string | null, aliveForMs: number): Promise<number> => {
    const name = names.settings
    const member = settings === null ? '' : `${settings} ${instance}`
    const [surplus, variants] = await runSettings(name, member, instance, aliveForMs)
    refuseSome('settings', name, Number(surplus), `are beyond ${maxInstances}, and were removed`)
    return Number(variants)
  }
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
    const [, ahead, surplus, wanted] = await Promise.all([
      redis.zremrangebyscore(name, '-inf', now - forMs),
      // The clock of another gateway may be hours ahead of this one: what is a day ahead is damaged.
      redis.zremrangebyscore(name, `(${now + utcDayMs}`, '+inf'),
      redis.zremrangebyrank(name, 0, -1 - maxWanted),
      redis.zcard(name),
      redis.pexpire(name, forMs * 2),
      ...added,
    ])
    refuseSome('wanted', name, ahead, 'are in the future, and were removed')
    refuseSome('wanted', name, surplus, `are beyond ${maxWanted}, and were removed`)
    return wanted
  }

  // One key per instance, read in part: a value of any size or type that somebody else wrote costs no more than a report.
  const reportOf = async (id: string): Promise<string | undefined> => {
    try {
      const text = await redis.getrange(names.instance(id), 0, longestReport)
      return text === '' || Buffer.byteLength(text) > longestReport ? undefined : text
    } catch (error) {
      if (isWrongType(error)) return undefined
      throw error
    }
  }

  return {
    heartbeat: async ({
      instance,
      aliveForMs,
      settings,
      topic,
      requested,
      wantedForMs,
      now,
      report: text,
    }) => {
      const [instances, variants, wanted] = await Promise.all([
        ownType('instances', names.instances, () => heartbeat(instance, aliveForMs)),
        ownType('settings', names.settings, () => report(instance, settings, aliveForMs)),
        ownType('wanted', names.wanted(topic), () => want(topic, requested, wantedForMs, now)),
        redis.set(names.instance(instance), text, 'PX', aliveForMs * 2),
      ])
      return {
        instances: wholeFrom(instances),
        variants: wholeFrom(variants),
        wanted: wholeFrom(wanted),
      }
    },
    leave: async instance => void (await redis.zrem(names.instances, instance)),
    aliveInstances: async aliveForMs => {
      const name = names.instances
      const [tooLong, ...found] = await ownType('instances', name, () => readInstances(name, aliveForMs))
      refuseSome('instances', name, Number(tooLong), namesTooLong)
      return Promise.all(
        pairsOf(found.map(String)).map(async ([id, silentForMs]) => ({
          id,
          silentForMs: wholeFrom(silentForMs),
          report: await reportOf(id),
        })),
      )
    },
    wanted: (topic, since) => {
      const name = names.wanted(topic)
      return ownType('wanted', name, () => wantedSince(name, since))
    },
    appendChangeRecord: async (topic, text, keepUntil, above = 0) => {
      const length = Buffer.byteLength(text)
      if (length > longestChangeRecord)
        throw new StoreError(`a change record has ${length} bytes; allowed: ${longestChangeRecord}`)
      const name = names.changeRecords[topic]
      const [number = 0, gone = 0] = await runAppend(name, text, keepUntil, maxChangeRecords, above)
      refuseSome('change_records', name, gone, notOurs)
      return number
    },
    changeRecordsAfter: async (topic, number) => {
      const name = names.changeRecords[topic]
      // The text begins with the number and a blank.
      const longest = longestChangeRecord + 20
      const [gone, ...found] = await readChangeRecords(name, number, maxChangeRecords, longest)
      refuseSome('change_records', name, Number(gone), notOurs)
      const records = Array.from({ length: found.length / 2 }, (_, i) => ({
        number: Number(found[2 * i]),
        text: String(found[2 * i + 1]).replace(/^\d+ /, ''),
      }))
      return splitAt(number, records)
    },
  }
}

const namesTooLong = `are longer than ${longestName} bytes, and were removed`
const notOurs = 'have an invalid number or length, and were removed'

// Records are dropped from the oldest on, so where one is still there, all after it are.
const splitAt = (number: number, records: ChangeRecord[]): { records: ChangeRecord[]; complete: boolean } => {
  if (number === 0) return { records, complete: records.length < maxChangeRecords }
  const [first, ...later] = records
  return first?.number === number ? { records: later, complete: true } : { records, complete: false }
}
