// The interface of a contender: the requests to send to a running server, how its responses are checked, and what it
// counted. Also the parts that contenders share: the body, its origin, and the check of one response.

import { Agent, request } from 'undici'
import type { Env } from '../../test/scenarios/set-up.ts'
import type { Workload } from './load.ts'
import type { ReadRedis } from './redis-cost.ts'

/** A server's own counters of its requests so far; those that it does not have are missing. */
export type Counters = {
  /** Units counted for the keys of this contender. */
  readonly counted?: number
  /** Responses with the expected status, and with any other. */
  readonly right?: number
  readonly others?: number
  /** Lines of the access log since it was last emptied. */
  readonly logged?: number
}

export type Contender = {
  readonly id: string
  readonly name: string
  /** Of its present process. */
  pid(): number
  /** Starts a process of its own anew, and requests everything once. */
  renew(): Promise<void>
  workload(): Promise<Workload>
  /** @throws Error with a sentence when a response is not as expected */
  check(): Promise<void>
  counters?(): Promise<Counters>
  /** Runs before each round; empties a log, for example. */
  tidy?(): Promise<void>
  /** How long its counters may grow after the last response. */
  readonly settlesForMs?: number
  readonly usesRedis?: boolean
  /** So many answers of one load at most, where requests may not be repeated. */
  readonly maxAnswers?: number
}

/** A contender that cannot be measured here, and why. */
export type Absent = { readonly id: string; readonly name: string; readonly absent: string }

export const withoutRedis = 'redis-server is not installed (Debian and Ubuntu: redis-server)'

export type World = {
  /** Folder for all written files. */
  readonly folder: string
  readonly providerUrl: string
  /** Undefined where Redis is not installed. */
  readonly redisUrl: string | undefined
  readonly readRedis: ReadRedis | undefined
  /** The environment of a gateway of this run. */
  env(more: Env): Env
  /** Serves the body with all headers of the gateway except those of the quota, on the cores of the load. */
  readonly originUrl: string
  /** File with the body. */
  readonly bodyFile: string
  /** File with the gateway's headers except those of the quota, as JSON. */
  readonly headersFile: string
  readonly body: Buffer
  /** The current response of a separate gateway that receives no load; of `path` unless another is given. */
  reference(path?: string): Promise<Answer>
  /** Address and key of that gateway, for those who take its responses as their origin. */
  readonly referenceUrl: string
  readonly referenceKey: string
}

export const path = '/api/v1/weather/district/3026'
/** In PEM. */
export type CertificateFiles = { readonly cert: string; readonly key: string }

/** A quota that is never used up. */
export const limit = 1_000_000_000

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

// The certificates here are our own; tls-loader.ts verifies them.
const anyCertificate = new Agent({ connect: { rejectUnauthorized: false } })

export const get = async (url: string, headers: Record<string, string> = {}): Promise<Answer> => {
  const dispatcher = url.startsWith('https:') ? { dispatcher: anyCertificate } : {}
  const { statusCode, headers: responseHeaders, body } = await request(url, { headers, ...dispatcher })
  return {
    status: statusCode,
    headers: Object.fromEntries(
      Object.entries(responseHeaders).map(([name, value]) => [name, String(value)]),
    ),
    body: Buffer.from(await body.arrayBuffer()),
  }
}

/** Throws unless the response is a 200 with this body. */
export const expectBody = ({ status, body }: Pick<Answer, 'status' | 'body'>, expected: Buffer): void => {
  if (status !== 200) throw new Error(`answered ${status} in place of 200`)
  if (!body.equals(expected))
    throw new Error(`${body.length} bytes that differ from the ${expected.length} expected`)
}
