// Whether a request came the way it must: over HTTPS, ended here or at a trusted proxy, or in the clear on a loopback
// address where neither is configured. Also what HTTP itself demands of it. The start-up rule stands in the config.

import type { FastifyRequest } from 'fastify'
import { badRequest, type Problem } from './problem.ts'

/** @param behindProxies whether addresses are configured that may end TLS for us */
export const transportProblem = (request: FastifyRequest, behindProxies: boolean): Problem | undefined => {
  if (request.raw.httpVersion === '1.1' && !request.raw.headers.host)
    return badRequest('the host header is missing; HTTP/1.1 requires it')
  if (behindProxies && !cameOverHttps(request))
    return badRequest('the request came over plain HTTP; HTTPS is required')
  return undefined
}

// Fastify believes x-forwarded-proto from the trusted addresses alone and looks at its last entry; a request that was
// plain on any part of its way was plain.
const cameOverHttps = (request: FastifyRequest): boolean => {
  const ways = String(request.headers['x-forwarded-proto'] ?? '').split(',')
  return request.protocol.toLowerCase() === 'https' && ways.every(way => way.trim().toLowerCase() === 'https')
}
