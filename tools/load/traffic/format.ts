// A format of traffic files: how a file in it is recognised, and its reader, which tells of the file what else it finds. The
// formats themselves are listed in formats.ts.

import { InputError } from 'abohawa/common/errors.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type Found = {
  /** Right lines without a request. */
  skippedLines: number
  /** Requests that no server has received, in the file of a browser, or another than `host`. */
  readonly leftOut: Record<LeftOut, number>
  /** Null where files of its format name no host. */
  host: string | null
  /** The share of requests that the log was set to hold, where it was below 1 (`log.accessShare`). */
  share: number | null
}

export type Reading = {
  /** Gives the pseudonym of a key, which must not leave a reader. */
  readonly nameOf: (secret: string) => string
  /** The host whose requests are wanted, with its port unless that is usual, of files that name hosts. */
  readonly host?: string | undefined
  readonly found: Found
  /** Why its chunks ended before the file does, which is then no whole line. */
  readonly failure?: string | undefined
  /** Reports what is wrong with a line; throws on what is no InputError. @param of the part of the line that is meant */
  onFault(line: number, fault: unknown, of?: string): void
}

/** A host without a port that is usual for http or https: people name it or leave it away. */
export const withoutUsualPort = (host: string): string => host.replace(/:(?:80|443)$/, '')

/** Whether a request to this host is wanted; counts it where not. @throws InputError for one whose host is not known */
export const isOfHost = ({ host: wanted, found }: Reading, host: string | undefined): boolean => {
  if (wanted === undefined) return true
  if (host === undefined) throw new InputError('it names no host; allowed with --host: requests that do')
  if (host === wanted) found.host = host
  else found.leftOut.otherHosts += 1
  return host === wanted
}

/** The host of a URL, or of a header, as `--host` is read; undefined where there is none. */
export const hostIn = (text: string | undefined): string | undefined => {
  if (text === undefined || text === '') return undefined
  const url = URL.parse(/^https?:\/\//i.test(text) ? text : `https://${text}`)
  return url ? withoutUsualPort(url.host) : undefined
}

/** `cached`: a browser served them itself. `blocked`: they have no response, so that most were never sent. */
export const leftOut = ['cached', 'blocked', 'otherHosts'] as const
export type LeftOut = (typeof leftOut)[number]

/** In the order in which a file is compared with them. */
export const formatNames = ['access-log', 'ndjson', 'har', 'gor', 'combined', 'nginx'] as const
/** Those whose requests may name a host. */
export const formatsWithHosts: readonly string[] = ['har', 'gor', 'combined']
export type FormatName = (typeof formatNames)[number]

export type Read = (
  chunks: AsyncIterable<Buffer>,
  reading: Reading,
) => AsyncGenerator<TrafficRequest[], void, undefined>
