// What the reader of a traffic file gets and finds, whatever its format.

import { InputError } from 'abohawa/common/errors.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type Found = {
  /** Valid lines without a request. */
  skippedLines: number
  /** Requests that no server received, or that went to another host. */
  readonly leftOut: Record<LeftOut, number>
  /** Null in formats without hosts. */
  host: string | null
  /** `log.access` of the log, if it was below 1. */
  share: number | null
}

export type Reading = {
  /** The pseudonym of a key, because keys must not leave a reader. */
  readonly nameOf: (secret: string) => string
  /** The host of `--host`, without the default port. */
  readonly host?: string | undefined
  readonly found: Found
  /** Why reading ended before the end of the file. */
  readonly failure?: string | undefined
  /** Reports a faulty line; rethrows other errors. @param of the part of the line */
  onFault(line: number, fault: unknown, of?: string): void
}

export const withoutUsualPort = (host: string): string => host.replace(/:(?:80|443)$/, '')

/** Whether a request is for the host of `--host`; counts others. @throws InputError for an unknown host */
export const isOfHost = ({ host: wanted, found }: Reading, host: string | undefined): boolean => {
  if (wanted === undefined) return true
  if (host === undefined) throw new InputError('--host requires requests with a host')
  if (host === wanted) found.host = host
  else found.leftOut.otherHosts += 1
  return host === wanted
}

/** The host of a URL or header, in the form of `--host`; undefined without one. */
export const hostIn = (text: string | undefined): string | undefined => {
  if (text === undefined || text === '') return undefined
  const url = URL.parse(/^https?:\/\//i.test(text) ? text : `https://${text}`)
  return url ? withoutUsualPort(url.host) : undefined
}

/** `cached`: served by the browser. `blocked`: without a response. */
export const leftOut = ['cached', 'blocked', 'otherHosts'] as const
export type LeftOut = (typeof leftOut)[number]

/** In the order in which they are tried. */
export const formatNames = ['access-log', 'ndjson', 'har', 'gor', 'combined', 'nginx'] as const
export const formatsWithHosts: readonly string[] = ['har', 'gor', 'combined']
export type FormatName = (typeof formatNames)[number]

export type Read = (
  chunks: AsyncIterable<Buffer>,
  reading: Reading,
) => AsyncGenerator<TrafficRequest[], void, undefined>
