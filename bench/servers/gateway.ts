// Our gateway as a subject, with its keys, what it is requested, and how its answers are checked. Processes of one subject share
// a store, as those that follow one another do.

import { type Issued, issueKeys, usedToday } from '../../test/scenarios/keys.ts'
import { type Env, forAll, placesByCell } from '../../test/scenarios/set-up.ts'
import type { Running, Subject } from '../rounds.ts'
import { sum } from '../row.ts'
import { startGateway } from '../tools/gateway-process.ts'
import { serverCore } from '../tools/processes.ts'
import { expectBody, get, path, type Reference } from '../tools/world.ts'

export const everyPlace = placesByCell().flatMap(({ paths }) => paths)

/** What a server is requested: requests everything once, and returns the load and its check. */
export type Traffic = (url: string, keys: readonly string[]) => Promise<Pick<Running, 'workload' | 'check'>>

/** These paths in turn with all keys in turn. @param reference what the first path is compared with */
export const pathsInTurn =
  (
    reference: Reference | undefined,
    paths: readonly string[] = [path],
    headers: Record<string, string> = {},
  ): Traffic =>
  async (url, keys) => {
    const [first = '', key = ''] = [paths[0], keys[0]]
    await forAll(paths, 64, async one => {
      const { status } = await get(url + one, { 'x-api-key': key })
      if (status !== 200) throw new Error(`${one} answered ${status} in place of 200`)
    })
    return {
      workload: async () => ({ url, paths, keys, headers }),
      check: async () => {
        if ((await get(url + first, { 'x-api-key': 'another' })).status !== 401)
          throw new Error('a key that is unknown was let in')
        const answer = await get(url + first, { 'x-api-key': key })
        if (!reference) return
        const expected = await reference(first)
        expectBody(answer, expected.body)
        if (answer.headers.etag !== expected.headers.etag) throw new Error('has another etag')
      },
    }
  }

export const keysOf = (issued: readonly Issued[]): string[] => issued.map(({ key }) => key)

/** The units of all these keys today. */
export const usedBy = async (env: Env, issued: readonly Issued[]): Promise<number> => {
  const ids = issued.map(({ id }) => id)
  return sum(await usedToday(env, ids))
}

type GatewayOptions = {
  readonly id: string
  readonly name: string
  readonly folder: string
  readonly env: Env
  readonly traffic: Traffic
  readonly keys?: number
  /** Of another build. */
  readonly program?: string
  readonly issue?: typeof issueKeys
  /** On one port. */
  readonly processes?: number
}

export const gatewaySubject = ({
  id,
  name,
  folder,
  env,
  traffic,
  keys = 1,
  program,
  issue = issueKeys,
  processes = 1,
}: GatewayOptions): Subject => {
  let issued: ReturnType<typeof issueKeys> | undefined
  return {
    id,
    name,
    usesRedis: env.ABOHAWA_REDIS__URL !== undefined,
    start: async scope => {
      issued ??= issue(env, Array(keys).fill('enterprise'))
      const own = await issued
      const { pid, urls } = await startGateway(scope, folder, serverCore, env, { program, processes })
      const sent = await traffic(urls.api ?? '', keysOf(own))
      return {
        pid,
        ...sent,
        // Another build may count in another form.
        ...(program === undefined && { counted: () => usedBy(env, own) }),
      }
    },
  }
}
