// One request to the provider that weighs nothing, without the circuit breaker: does it answer at all? Used where
// an operator is about to depend on it.

import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../config/schema.ts'
import { protocolIn } from './account.ts'

/** @throws Error when no answer came within the time, in ms */
export const probeProvider = async (
  config: Config,
  withinMs: number,
): Promise<{ status: number; headers: IncomingHttpHeaders }> => {
  const { request } = await import('undici')
  const { baseUrl, apiKey, runs } = config.provider
  const protocol = protocolIn(config)
  const { path } = protocol.runs.requestFor(runs.model)
  const { statusCode, headers, body } = await request(baseUrl.replace(/\/+$/, '') + path, {
    headers: { accept: protocol.accept, ...(apiKey ? protocol.keyHeaders(apiKey) : {}) },
    signal: AbortSignal.timeout(withinMs),
  })
  await body.dump()
  return { status: statusCode, headers }
}
