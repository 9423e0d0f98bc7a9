// What is measured in turn: a way of asking a server that runs, how its answers are checked, and what it counted. And
// what all of them share: the body, where it comes from, and how one answer is looked at.

import { request } from 'undici'
import type { Workload } from './load.ts'

/** What a server itself says of the requests it had so far; what it can't tell is missing. */
export type Counters = {
  /** Units taken from the keys of this contender. */
  readonly counted?: number
  /** Answers with the status that is right, and with any other. */
  readonly right?: number
  readonly others?: number
  /** Lines of the access log since it was emptied. */
  readonly logged?: number
}

export type Contender = {
  readonly id: string
  readonly name: string
  readonly pid: number
  workload(): Promise<Workload>
  /** Throws a sentence when one answer is not what it has to be. */
  check(): Promise<void>
  counters?(): Promise<Counters>
  /** Before each round, such as emptying a log. */
  tidy?(): Promise<void>
  /** How long after the last answer its counters may still grow. */
  readonly settlesForMs?: number
}

/** A contender that can't be measured here, and why. */
export type Absent = { readonly id: string; readonly name: string; readonly absent: string }

export const withoutRedis = 'redis-server is not installed (Debian and Ubuntu: redis-server)'

export type World = {
  /** For whatever is written. */
  readonly folder: string
  readonly providerUrl: string
  /** Undefined where there is no Redis to measure with. */
  readonly redisUrl: string | undefined
  /** Sends the body with all headers of the gateway's but those of the quota, on the cores of the load. */
  readonly originUrl: string
  /** A file of the body. */
  readonly bodyFile: string
  /** A file of the gateway's headers but those of the quota, as JSON. */
  readonly headersFile: string
  readonly body: Buffer
  /** The answer of a gateway of its own that nobody else asks, now. */
  reference(): Promise<Answer>
}

export const path = '/api/v1/weather/district/3026'
/** Of keys that are never to run out. */
export const limit = 1_000_000_000

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export const get = async (url: string, headers: Record<string, string> = {}): Promise<Answer> => {
  const { statusCode, headers: responseHeaders, body } = await request(url, { headers })
  return {
    status: statusCode,
    headers: Object.fromEntries(
      Object.entries(responseHeaders).map(([name, value]) => [name, String(value)]),
    ),
    body: Buffer.from(await body.arrayBuffer()),
  }
}

/** Throws unless the answer is a 200 with this body. */
export const expectBody = ({ status, body }: Pick<Answer, 'status' | 'body'>, expected: Buffer): void => {
  if (status !== 200) throw new Error(`answered ${status} in place of 200`)
  if (!body.equals(expected))
    throw new Error(`${body.length} bytes that differ from the ${expected.length} expected`)
}

/** What was counted by the header of an answer, without the answers that this itself asked for. */
export const countersByHeader = (url: string, key: string): (() => Promise<Counters>) => {
  let own = 0
  return async () => {
    const { headers } = await get(url, { 'x-api-key': key })
    own += 1
    return {
      counted: Number(headers['x-ratelimit-limit']) - Number(headers['x-ratelimit-remaining']) - own,
    }
  }
}
