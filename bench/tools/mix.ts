// Realistic traffic, the mix, from `abohawa traffic generate` with a fixed seed: places and keys by Zipf, all endpoints, both
// languages, gzip and br, and requests with the current ETag. Makes a load of it, and checks samples of the answers.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decoded } from '../../fuzz/http/response-reader.ts'
import { forAll } from '../../test/scenarios/set-up.ts'
import { runCommand } from '../../test/support/process.ts'
import { requestOf, type TrafficRequest } from '../../tools/load/traffic/traffic-request.ts'
import type { Traffic } from '../servers/gateway.ts'
import { type Answer, get, type Reference } from './world.ts'

export const mixKeys = 1_000

/** The mix as `generate` draws it, without requests that would be refused. */
const mixOptions = [
  ['--rate', '1000', '--duration', '20s', '--shape', 'flat', '--seed', '1', '--bad', '0'],
  ['--alpha', '1', '--keys', String(mixKeys), '--keys-alpha', '0.8'],
  ['--mix', 'weather=70,forecast=20,coords=6,locations=2,location=2', '--english', '0.3'],
  ['--compressed', '0.75', '--conditional', '0.1'],
].flat()

export type Mix = {
  /** The traffic file. */
  readonly file: string
  /** In the order in which they are sent. */
  readonly requests: readonly TrafficRequest[]
}

export const generateMix = async (folder: string): Promise<Mix> => {
  const file = join(folder, 'mix.ndjson')
  const { code, stderr } = await runCommand(
    ['traffic', 'generate', ...mixOptions, '--out', file, '--force'],
    {},
  )
  if (code !== 0) throw new Error(`no traffic: ${stderr}`)
  return { file, requests: (await readFile(file, 'utf8')).trim().split('\n').map(requestOf) }
}

/** Of these keys, the one of a request: that of key-0001 is the first. */
export const keyOf = ({ key = '' }: TrafficRequest, keys: readonly string[]): string =>
  keys[(Number(/\d+$/.exec(key)?.[0] ?? 1) - 1) % keys.length] ?? ''

const encodingOf = ({ accepts }: TrafficRequest): Record<string, string> =>
  accepts === undefined ? {} : { 'accept-encoding': accepts }

/** Requests of equal path and encoding once. */
const distinct = (requests: readonly TrafficRequest[]): TrafficRequest[] => [
  ...new Map(requests.map(one => [`${one.path} ${one.accepts}`, one])).values(),
]

const checkedAtOnce = 24
const passes = 3

type Mixed = {
  /** What samples are compared with; undefined for the server itself. */
  readonly reference?: Reference
  /** Whether the ETags of the server are those of the gateway. */
  readonly hasOurEtags: boolean
}

/**
 * The mix in its order, each request with the ETag that is current when the load begins. Samples are others each time: status, whole
 * body after decoding, ETag, and the 304 with it.
 */
export const mixTraffic =
  ({ requests }: Mix, { reference, hasOurEtags }: Mixed): Traffic =>
  async (url, keys) => {
    const conditional = distinct(requests.filter(one => one.conditional))
    const own = requests.map(one => keyOf(one, keys))
    const send = (one: TrafficRequest, more: Record<string, string> = {}): Promise<Answer> =>
      get(url + one.path, { 'x-api-key': keyOf(one, keys), ...encodingOf(one), ...more })
    const expectedOf = reference ?? ((path = '') => get(url + path, { 'x-api-key': keys[0] ?? '' }))
    let turn = 0

    const checkOne = async (one: TrafficRequest): Promise<void> => {
      const { status, headers, body } = await send(one)
      const expected = await expectedOf(one.path)
      const fault = (text: string) => new Error(`${one.path} ${text}`)
      if (status !== 200) throw fault(`answered ${status} in place of 200`)
      if (!decoded(body, headers['content-encoding']).equals(expected.body))
        throw fault('has another body than the reference')
      if (
        one.accepts !== undefined &&
        expected.body.length > 2_000 &&
        headers['content-encoding'] === undefined
      )
        throw fault(`was not compressed for ${one.accepts}`)
      if (headers.etag === undefined || (hasOurEtags && headers.etag !== expected.headers.etag))
        throw fault(`has the etag ${headers.etag}, the reference ${expected.headers.etag}`)
      const again = await send(one, { 'if-none-match': headers.etag })
      if (again.status !== 304 || again.body.length > 0)
        throw fault(`answered ${again.status} with ${again.body.length} bytes to its own etag`)
    }
    let left = distinct(requests)
    // Repeats requests that a busy machine refused: a cell that is loaded late is no fault of the measured server.
    for (let pass = 1; pass <= passes && left.length > 0; pass++) {
      const failed: TrafficRequest[] = []
      await forAll(left, 64, async one => {
        const { status, body } = await send(one)
        if (status === 200) return
        failed.push(one)
        if (pass === passes) throw new Error(`${one.path} answered ${status} while it was warmed: ${body}`)
      })
      left = failed
    }
    return {
      workload: async () => {
        const etags = new Map<string, string>()
        await forAll(conditional, 64, async one => {
          const { etag } = (await send(one)).headers
          if (etag !== undefined) etags.set(`${one.path} ${one.accepts}`, etag)
        })
        const headersInTurn = requests.map(one => {
          const etag = one.conditional ? etags.get(`${one.path} ${one.accepts}`) : undefined
          return { ...encodingOf(one), ...(etag === undefined ? {} : { 'if-none-match': etag }) }
        })
        return { url, paths: requests.map(({ path }) => path), keys: own, headersInTurn }
      },
      check: async () => {
        const refused = await get(url + (requests[0]?.path ?? ''), { 'x-api-key': 'another' })
        if (refused.status !== 401) throw new Error('a key that is unknown was let in')
        turn += 1
        const step = Math.floor(requests.length / checkedAtOnce)
        const samples = Array.from(
          { length: checkedAtOnce },
          (_, i) => requests[(i * step + turn * 7) % requests.length],
        )
        for (const one of samples) if (one) await checkOne(one)
      },
    }
  }
