// What tests of the ops listener share: a purge as bytes, one that is ordered, and how many requests were refused for a reason.

import { metricOf } from '../support/metric.ts'
import { requestBytes, sendRaw } from '../support/raw-connection.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { type GatewaySetting, startGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'

const purgeAll = '{"scope":"all"}'

/** A purge of everything with these headers beside those of its body. */
export const purgeBytes = (headers: readonly string[]) =>
  requestBytes(
    'POST /cache/purge',
    [...headers, 'content-type: application/json', `content-length: ${purgeAll.length}`],
    purgeAll,
  )

/** Spends, as what passes to the provider does, and changes what is cached. */
export const refreshBytes = (headers: readonly string[]) =>
  requestBytes('POST /cache/refresh?of=district/3026', [...headers, 'content-length: 0'])

/** A gateway beside a provider that records what it is asked, and requests to its ops listener as bytes. */
export const startOps = async (t: Teardown, setting: Omit<GatewaySetting, 'providerUrl'>) => {
  const provider = await startScriptedProvider(t)
  const gateway = await startGateway(t, { providerUrl: provider.url, ...setting })
  const send = (bytes: string) => sendRaw(gateway.opsUrl, bytes)
  return {
    ...{ provider, gateway, send },
    get: (path: string, headers: readonly string[]) => send(requestBytes(`GET ${path}`, headers)),
    refused: (reason: string) => refusedFor(gateway.opsUrl, reason),
  }
}

/** By the metric; over its own connection, so that none stays open. */
export const refusedFor = async (opsUrl: string, reason: string): Promise<number> =>
  (await metricOf(opsUrl, `abohawa_ops_refused_total{reason="${reason}"}`, true)) ?? 0

/** Orders a purge at this gateway. */
export const orderPurge = async (opsUrl: string, scope: string, hard?: boolean): Promise<unknown> => {
  const response = await fetch(`${opsUrl}/cache/purge`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ scope, hard }),
  })
  if (!response.ok) throw new Error(`purge: ${response.status} ${await response.text()}`)
  return response.json()
}
