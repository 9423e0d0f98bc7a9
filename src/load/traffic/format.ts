// A format of traffic files: how a file in it is recognised, and its reader. The formats themselves are listed in formats.ts.

import type { LineFault } from './text-lines.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** The reports of a reader beside its requests. */
export type Observer = {
  /** Gives the pseudonym of a key, which must not leave a reader. */
  readonly nameOf: (secret: string) => string
  readonly onFault: LineFault
  /** The log holds a share of the requests only. */
  readonly onShare: (share: number) => void
  /** So many lines are right and hold no request. */
  readonly onSkipped: (lines: number) => void
  /** The host whose requests are wanted, with its port unless that is usual, of files that name hosts. */
  readonly host?: string | undefined
  /** So many requests are no traffic of one server, the host. */
  readonly onLeftOut: (why: LeftOut, requests: number) => void
  readonly onHost: (host: string) => void
}

/** A host without a port that is usual for http or https: people name it or leave it away. */
export const withoutUsualPort = (host: string): string => host.replace(/:(?:80|443)$/, '')

/** `cached`: a browser served them itself. `blocked`: they have no response, so that most were never sent. */
export const leftOut = ['cached', 'blocked', 'otherHosts'] as const
export type LeftOut = (typeof leftOut)[number]

/** In the order in which a file is compared with them. */
export const formatNames = ['access-log', 'ndjson', 'har', 'gor', 'combined', 'nginx'] as const
export type FormatName = (typeof formatNames)[number]

export type Format = {
  readonly name: FormatName
  /** Whether a file whose first bytes are this text is in this format. */
  readonly matches: (begin: string) => boolean
  readonly read: (
    chunks: AsyncIterable<Buffer>,
    observer: Observer,
  ) => AsyncGenerator<TrafficRequest[], void, undefined>
}
