// Where Redis is: its options, and the addresses, account and TLS options that follow from them.

import { X509Certificate } from 'node:crypto'
import { InputError, messageOf } from '../../common/errors.ts'
import { maxFileBytes, readRegularFileSync } from '../../common/regular-file.ts'
import type { ServerOptions } from './server.ts'

export type RedisMode = 'single' | 'sentinel' | 'cluster'

/** The address and mode of Redis; the defaults are for a single server. */
type RedisPlace = {
  /** `redis://` or `rediss://`: the server, the first sentinel or the first node of a cluster. */
  readonly url: string
  readonly mode?: RedisMode
  /** Further sentinels or nodes, `host:port`. */
  readonly nodes?: readonly string[]
  readonly sentinelMaster?: string | null
  readonly sentinelPassword?: string | null
  /** A file in PEM form. */
  readonly ca?: string | null
  /** The names of URL and mode in errors; by default their settings. */
  readonly urlName?: string
  readonly modeName?: string
}

export type RedisOptions = RedisPlace & {
  readonly prefix: string
  readonly connectTimeoutMs: number
  readonly commandTimeoutMs: number
}

export const addressesOf = ({ url, mode, nodes = [] }: RedisPlace): { host: string; port: number }[] =>
  [url, ...nodes.map(node => `redis://${node}`)].map(place => {
    const { hostname, port } = new URL(place)
    return {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? (mode === 'sentinel' ? 26_379 : 6_379) : Number(port),
    }
  })

export const accountOf = (url: string): ServerOptions => {
  const { username, password, searchParams } = new URL(url)
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(searchParams.has('family') && { family: Number(searchParams.get('family')) }),
  }
}

/** Options of TLS to Redis; undefined for redis:// URLs. @throws InputError when the authority's file can't be used */
export const tlsOf = ({ url, ca }: Pick<RedisPlace, 'url' | 'ca'>): { ca?: Buffer } | undefined => {
  if (!url.startsWith('rediss:')) return undefined
  if (!ca) return {}
  try {
    const authority = readRegularFileSync(ca, maxFileBytes.pem)
    // Node ignores a file that holds no certificate.
    new X509Certificate(authority)
    return { ca: authority }
  } catch (cause) {
    throw new InputError(
      `redis.ca is ${ca}, which can't be read as a certificate in PEM form: ${messageOf(cause)}`,
      {
        cause,
      },
    )
  }
}
