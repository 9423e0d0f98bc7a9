// The Redis user that docs/operating/redis.md documents, parsed from there, so that the tests use exactly the documented rights.

import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

export const account = { user: 'abohawa', password: 'SECRET' }

const page = readFileSync('docs/operating/redis.md', 'utf8')
const [own = '', more = ''] = [...page.matchAll(/^ACL SETUSER (abohawa .*)$/gm)].map(
  ([, rights = '']) => rights,
)
const rights = own.split(' ')
const onClusters = more.split(' ').slice(1)

/** The commands it may run, in lower case; on a cluster there are more. */
export const grantedCommands = (onCluster: boolean): string[] =>
  [...rights, ...(onCluster ? onClusters : [])]
    .filter(right => right.startsWith('+'))
    .map(right => right.slice(1))

export const makeAccount = async (admin: Redis, onCluster = false): Promise<void> => {
  const [name = '', ...granted] = rights
  await admin.acl('SETUSER', name, ...granted, ...(onCluster ? onClusters : []))
}

/** What an account was refused, in words. */
export const refusals = async (admin: Redis): Promise<string[]> =>
  ((await admin.acl('LOG')) as string[][]).map(entry => String(entry))
