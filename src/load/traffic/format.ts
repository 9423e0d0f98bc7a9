// A format of traffic files: how a file in it is recognised, and its reader, which tells of the file what else it finds. The
// formats themselves are listed in formats.ts.

import type { TrafficRequest } from './traffic-request.ts'

export type Found = {
  /** Right lines without a request. */
  skippedLines: number
  /** Requests of a file of a browser that no server has received, or another than `host`. */
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

/** `cached`: a browser served them itself. `blocked`: they have no response, so that most were never sent. */
export const leftOut = ['cached', 'blocked', 'otherHosts'] as const
export type LeftOut = (typeof leftOut)[number]

/** In the order in which a file is compared with them. */
export const formatNames = ['access-log', 'ndjson', 'har', 'gor', 'combined', 'nginx'] as const
export type FormatName = (typeof formatNames)[number]

export type Read = (
  chunks: AsyncIterable<Buffer>,
  reading: Reading,
) => AsyncGenerator<TrafficRequest[], void, undefined>
