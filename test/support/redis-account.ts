// The Redis user that docs/operating/redis.md documents, parsed from there, so that the tests use exactly the documented rights.

import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

export const account = { user: 'abohawa', password: 'SECRET' }

const [line = ''] = /^ACL SETUSER abohawa .*$/m.exec(readFileSync('docs/operating/redis.md', 'utf8')) ?? []
const [more = ''] =
  /(?<=^ACL SETUSER abohawa )\+cluster.*$/m.exec(readFileSync('docs/operating/redis.md', 'utf8')) ?? []
const rights = line.split(' ').slice(2)

/** The commands it may run, in lower case; on a cluster there are more. */
export const grantedCommands = (onCluster: boolean): string[] =>
  [...rights, ...(onCluster ? more.split(' ') : [])]
    .filter(right => right.startsWith('+'))
    .map(right => right.slice(1))

export const makeAccount = async (admin: Redis, onCluster = false): Promise<void> => {
  const [name = '', ...granted] = rights
  await admin.acl('SETUSER', name, ...granted, ...(onCluster ? more.split(' ') : []))
}

/** What an account was refused, in words. */
export const refusals = async (admin: Redis): Promise<string[]> =>
  ((await admin.acl('LOG')) as string[][]).map(entry => String(entry))
