// What tests of the ops listener share: a purge as bytes, one that is ordered, and how many requests were refused for a reason.

import { requestBytes } from './raw-connection.ts'
import { sendRequest } from './start-gateway.ts'

const purgeAll = '{"scope":"all"}'

/** A purge of everything with these headers beside those of its body. */
export const purgeBytes = (headers: readonly string[]) =>
  requestBytes(
    'POST /cache/purge',
    [...headers, 'content-type: application/json', `content-length: ${purgeAll.length}`],
    purgeAll,
  )

/** By the metric; over its own connection, so that none stays open. */
export const refusedFor = async (opsUrl: string, reason: string): Promise<number> => {
  const { text } = await sendRequest(`${opsUrl}/metrics`, { headers: { connection: 'close' } })
  return Number(
    new RegExp(`^abohawa_ops_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0,
  )
}

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
