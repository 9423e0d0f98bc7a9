// One request to a running gateway at its ops address, for the commands that know more with one than from the store alone, or
// need one.

import type { Command } from 'commander'
import type * as z from 'zod'
import type { Config } from '../config/schema.ts'
import { InputError, messageOf } from '../errors.ts'
import { safeText } from '../outside-text.ts'
import { UsageError } from './terminal.ts'

/** Adds `--gateway <url>`. */
export const addGatewayOption = (command: Command): Command =>
  command.option(
    '--gateway <url>',
    'the ops address of the gateway to query, which is sent ops.token; that of the configuration if not given',
  )

/** @throws UsageError for what is no address */
export const checkGateway = (gateway: string | undefined): void => {
  if (gateway !== undefined && !/^https?:$/.test(URL.parse(gateway)?.protocol ?? ''))
    throw new UsageError(
      `--gateway is ${safeText(gateway, 60)}; allowed: an address such as http://127.0.0.1:9090`,
    )
}

/** The address given, or that of a listener of the configured host and port as seen from the same machine. */
export const opsAddress = (gateway: string | undefined, { ops: { host, port } }: Config): string => {
  if (gateway !== undefined) return gateway.replace(/\/+$/, '')
  const reached = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

export type GatewayRequest = {
  readonly address: string
  readonly path: string
  readonly token: string | null
  readonly method?: 'GET' | 'POST'
  readonly timeoutMs?: number
}

const queryTimeoutMs = 10_000

/** The gateway's report, or why there is none. @throws InputError when the gateway refuses the request as wrong */
export const queryGateway = async <Report>(
  { address, path, token, method = 'GET', timeoutMs = queryTimeoutMs }: GatewayRequest,
  readSchema: () => Promise<z.ZodType<Report>>,
): Promise<{ report: Report } | { unavailable: string }> => {
  let status: number
  let body: unknown
  try {
    // undici's request instead of fetch, which refuses some ports; imported here for a fast start.
    const { request } = await import('undici')
    const { statusCode, body: responseBody } = await request(`${address}${path}`, {
      method,
      signal: AbortSignal.timeout(timeoutMs),
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
    })
    status = statusCode
    body = jsonIn(await responseBody.text())
  } catch (error) {
    return { unavailable: messageOf(error) }
  }
  const report = (await readSchema()).safeParse(body).data
  if (report !== undefined) return { report }
  const refusal = body instanceof Object && 'error' in body ? body.error : undefined
  if (status === 400 && typeof refusal === 'string') throw new InputError(refusal)
  // A gateway that has another token, or does not allow this host name.
  if ((status === 401 || status === 403) && typeof refusal === 'string') return { unavailable: refusal }
  return { unavailable: `it answered ${status}, and is no gateway of this version` }
}

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
