// The reply of INFO: its fields, and which server it is. What a value means is for those who read it.

import { safeText } from '../../common/outside-text.ts'

/** The fields of an INFO reply. */
export type RedisInfo = ReadonlyMap<string, string>

export const infoOf = (text: string): RedisInfo =>
  new Map(
    text
      .split('\r\n')
      .filter(line => /^\w+:/.test(line))
      .map(line => [line.slice(0, line.indexOf(':')), safeText(line.slice(line.indexOf(':') + 1), 100)]),
  )

/** Such as `Redis 8.0.1` or `Valkey 8.1.0`. */
export const serverName = (info: RedisInfo): string => {
  const valkey = info.get('valkey_version')
  return valkey === undefined ? `Redis ${info.get('redis_version') ?? 'unknown'}` : `Valkey ${valkey}`
}
