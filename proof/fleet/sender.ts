// Sends the requests of a load over real sockets, all at once or one after the other, and records each with its answer. While
// answers are awaited, time passes: a fleet on a clock that stands still would wait for ever.

import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { buildConnector, Pool } from 'undici'
import { decoded } from '../../fuzz/http/response-reader.ts'
import type { Recorder } from '../history.ts'
import { type PlannedRequest, type Protocol, statusPath } from '../steps.ts'
import type { FleetClock } from './clock.ts'

export type Target = { readonly gateway: number; readonly run: number; readonly apiUrl: string }

export type Sender = {
  /** Resolves when every request has its answer, or none after so long that there will be none. */
  send(requests: readonly PlannedRequest[], options?: SendOptions): Promise<void>
}

type SendOptions = {
  readonly inTurn?: boolean | undefined
  /** Called when the load is under way. */
  readonly meanwhile?: () => Promise<void> | void
}

export type SenderParts = {
  readonly protocol: Protocol
  readonly clock: FleetClock
  readonly recorder: Recorder
  /** Where a request for a gateway goes: another one takes it while that is away. */
  readonly targetOf: (gateway: number) => Target | undefined
  readonly keyOf: (name: string) => string
  /** The secret before the last rotation; undefined where there was none. */
  readonly formerKeyOf: (name: string) => string | undefined
}

const patienceMs = 6_000
// Until a key on a connection is known, its streams are served one after the other, and each may wait for Redis.
const patienceForEachMs = 700
const creepEveryMs = 60
const creepMs = 500

export const createSender = (parts: SenderParts): Sender => {
  const { protocol, clock, recorder, targetOf, keyOf, formerKeyOf } = parts
  // The last tag of a path for a key.
  const tags = new Map<string, string>()

  const sendOne = async (
    planned: PlannedRequest,
    pools: Map<string, Opened>,
    withinMs: number,
  ): Promise<void> => {
    const target = targetOf(planned.gateway)
    if (!target) return
    const { gateway, run, apiUrl } = target
    const { key, path, method } = planned
    const former = planned.former && formerKeyOf(key)
    const opened = pools.get(apiUrl) ?? openPool(apiUrl, protocol)
    pools.set(apiUrl, opened)
    const ifNoneMatch = planned.revalidate && tags.get(`${key} ${path}`)
    const sent = recorder.moment()
    const known = {
      kind: 'answer',
      sent,
      gateway,
      run,
      key,
      path,
      ...(method && { method }),
      ...(former !== undefined && { former: true as const }),
      ...(ifNoneMatch && { ifNoneMatch }),
      ...(planned.encoding && { encoding: planned.encoding }),
    } as const
    try {
      const response = await opened.pool.request({
        path: path === statusPath ? path : `/api/v1${path}`,
        method: method ?? 'GET',
        headers: {
          'x-api-key': former ?? keyOf(key),
          ...(planned.encoding && { 'accept-encoding': planned.encoding }),
          ...(ifNoneMatch && { 'if-none-match': ifNoneMatch }),
        },
        signal: AbortSignal.timeout(withinMs),
      })
      const bytes = Buffer.from(await response.body.arrayBuffer())
      const headers = Object.fromEntries(
        Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
      )
      if (headers.etag) tags.set(`${key} ${path}`, headers.etag)
      const certificate = opened.certificate()
      recorder.add({
        ...known,
        ...(certificate !== undefined && { certificate }),
        status: response.statusCode,
        headers,
        body: bytes.length > 0 ? decoded(bytes, headers['content-encoding']).toString() : '',
        bytes: bytes.length,
      })
    } catch (error) {
      const failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
      recorder.add({ ...known, status: 0, headers: {}, body: '', bytes: 0, failure })
    }
  }

  return {
    send: async (requests, { inTurn = false, meanwhile } = {}) => {
      const pools = new Map<string, Opened>()
      const withinMs = patienceMs + requests.length * patienceForEachMs
      const all = async (): Promise<void> => {
        if (!inTurn) await Promise.all(requests.map(each => sendOne(each, pools, withinMs)))
        else for (const each of requests) await sendOne(each, pools, patienceMs)
      }
      let isOver = false
      const sending = all().finally(() => {
        isOver = true
      })
      await meanwhile?.()
      await Promise.race([sending, pause(creepEveryMs)])
      while (!isOver) {
        await clock.advance(creepMs)
        await Promise.race([sending, pause(creepEveryMs)])
      }
      await sending
      for (const { pool } of pools.values()) await pool.destroy()
    },
  }
}

/** The connections of a load to one gateway, and the fingerprint of the certificate that the last of them was shown. */
type Opened = { readonly pool: Pool; certificate(): string | undefined }

const openPool = (url: string, protocol: Protocol): Opened => {
  let certificate: string | undefined
  // The certificate has a name, and the gateways of a history have an address.
  const connect = buildConnector({ rejectUnauthorized: false, allowH2: protocol === 'http2' })
  const pool = new Pool(url, {
    connections: 8,
    allowH2: protocol === 'http2',
    connect: (options, callback) =>
      connect(options, (...[error, socket]) => {
        if (error) {
          callback(error, null)
          return
        }
        if ('getPeerX509Certificate' in socket)
          certificate = (socket as TLSSocket).getPeerX509Certificate()?.fingerprint256
        callback(null, socket)
      }),
  })
  return { pool, certificate: () => certificate }
}
