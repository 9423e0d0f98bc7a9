// Whether a request came the way it must: over HTTPS, ended here or at a trusted proxy, or in the clear on a loopback
// address where neither is configured. Also what HTTP itself demands of it. The start-up rule stands in the config.

import type { FastifyRequest } from 'fastify'
import { badRequest, type Problem } from './problem.ts'

/** @param behindProxies whether addresses are configured that may end TLS for us */
export const transportProblem = (request: FastifyRequest, behindProxies: boolean): Problem | undefined => {
  if (request.raw.httpVersion === '1.1' && !request.raw.headers.host)
    return badRequest('the host header is missing; HTTP/1.1 requires it')
  // Fastify reads x-forwarded-proto from the trusted addresses alone.
  if (behindProxies && request.protocol !== 'https')
    return badRequest(
      `the request came over ${request.protocol === 'http' ? 'plain HTTP' : 'no HTTPS'}; HTTPS is required`,
    )
  return undefined
}
