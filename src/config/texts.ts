// Text that means something outside this program: hosts, addresses, URLs, zones, files. Nothing is looked up or opened.

import { isIP } from 'node:net'
import { isWholeRange } from '../common/address-range.ts'
import { redactedUrl } from '../common/redacted-url.ts'
import { isWebOrigin } from '../common/web-origin.ts'
import { secrets, text } from './kinds.ts'

const parsedUrl = (value: string): URL | undefined => URL.parse(value) ?? undefined

/** Where to listen: an IP address or a host name. */
export const host = () =>
  text('an IP address or a host name, such as 127.0.0.1 or localhost', /^[A-Za-z0-9._:-]+$/, value =>
    Boolean(isIP(value) || (/^[A-Za-z_][^:]*$/.test(value) && !/^[.-]|\.\.|[.-]$/.test(value))),
  )

const isHostAndPort = (value: string): boolean => {
  const { hostname, port, href } = parsedUrl(`redis://${value}`) ?? {}
  return Boolean(hostname) && Boolean(port) && port !== '0' && href === `redis://${value}`
}

/** Where a server is: a host name or an IP address, one of version 6 in brackets, and a port. */
export const hostAndPort = () =>
  text('a host and a port, such as redis-2:6379 or [fd00::2]:6379', /^[^\s/?#@]+$/, isHostAndPort).register(
    secrets,
    { redact: value => (/:.*@/s.test(value) ? redactedUrl(value) : value) },
  )

/** An IP address or a range in CIDR notation. */
export const trustedPeer = () =>
  text(
    'an IP address or a CIDR range from its first address on, such as 10.0.0.0/8',
    /^[0-9A-Fa-f.:/]+$/,
    isWholeRange,
  )

/** A file, relative to the directory the process starts in or absolute. */
export const filePath = (allowed = 'a file path') => text(allowed)

const withoutQuery = (value: string): string => redactedUrl(value).replace(/\?.*$/s, '?***')

/**
 * A base URL, in the one spelling of its place and without a slash at its end; a query would not survive the paths put after it.
 */
export const baseUrl = (allowed = 'an http or https URL without user, query or fragment') =>
  text(
    allowed,
    /^https?:\/\/[^\s/?#@"'$<>\\^`{|}][^\s?#@"'$<>\\^`{|}]*$/,
    // Behind a colon without a port stands a password whose host was forgotten.
    value => URL.canParse(value) && !/^https?:\/\/[^/]*:(?:\/|$)/.test(value),
  )
    .overwrite(value => (parsedUrl(value)?.href ?? value).replace(/\/+$/, ''))
    .register(secrets, { redact: withoutQuery })

/**
 * Whether this is a Redis URL. An @ behind the host belongs to a password with an unescaped sign: a part of that password
 * would be looked up as the host.
 */
export const isRedisUrl = (value: string): boolean => {
  const url = /^rediss?:\/\/\S+$/.test(value) ? parsedUrl(value) : undefined
  if (!url?.hostname) return false
  return /^\/?\d*$/.test(url.pathname) && url.hash === '' && !url.search.includes('@')
}

/** Where Redis is, with its password if it has one. */
export const redisUrl = () =>
  text(
    'a redis:// or rediss:// URL, its path empty or the number of a database and its password with @ / ? # as %40 %2F %3F %23, or null for the embedded store',
    /^rediss?:\/\/\S+$/,
    isRedisUrl,
  ).register(secrets, { redact: redactedUrl })

/** The prefix of every name in Redis. */
export const redisPrefix = {
  allowed: '1 to 64 letters, digits and the signs : . _ -',
  pattern: /^[A-Za-z0-9:._-]{1,64}$/,
}

/** A key that is shown to nobody. */
export const secretText = (allowed: string) =>
  text(allowed, /^\S+$/).register(secrets, { redact: () => '***' })

/** The key of a provider. Quotes around it come from a file that takes them literally. */
export const providerKey = () =>
  text(
    'text without blanks and without quotes as a part of it (in quotes if it is all digits), or null',
    /^[^\s"'`]+$/,
  ).register(secrets, { redact: () => '***' })

// More than a word or a repeated one has; fewer than 1 in 10 million random tokens of hexadecimal digits have less.
const leastDifferent = 8

/** A token for the header `authorization: Bearer …`, in the form of RFC 6750 and too long to be guessed. */
export const bearerToken = () =>
  text(
    `32 to 256 characters of A-Z a-z 0-9 - . _ ~ + / with = at the end only, at least ${leastDifferent} different ones ` +
      '(in quotes if it is all digits; openssl rand -hex 32 makes one), or null',
    /^(?=.{32,256}$)[A-Za-z0-9._~+/-]+=*$/,
    value => new Set(value).size >= leastDifferent,
  ).register(secrets, { redact: () => '***' })

/** The origin of web pages and apps as browsers send it, or any. */
export const webOrigin = () =>
  text(
    'an origin as browsers send it (https://, http:// or the scheme of an app such as capacitor://, a host in small letters of ASCII, xn--… for other scripts, whose first label may be *, a port that is not the default, no path and no slash at the end), or *',
    /\S/,
    isWebOrigin,
  )

const isZone = (name: string): boolean => {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name)
    return true
  } catch {
    return false
  }
}

/** A zone that this runtime's IANA database knows; a fixed offset such as +06:00 is not one. */
export const timeZone = () =>
  text('a time zone of the IANA database, such as Asia/Dhaka', /^[A-Za-z]/, isZone)
