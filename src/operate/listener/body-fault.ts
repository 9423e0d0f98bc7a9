// Which requests to the ops listener and the health listener may have a body. One with GET, HEAD, DELETE, OPTIONS, TRACE or CONNECT
// means nothing, and software in between disagrees about where it ends, so that its bytes may be read as a request.

import type { IncomingMessage } from 'node:http'
import { Refusal } from './refusal.ts'

const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

const mayHaveBody = ({ method = '' }: IncomingMessage): boolean => !bodiless.has(method)

/** Chunks are one even when there are none; a length of 0 is none. */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

/** Why the framing of a request is refused, or undefined. */
export const bodyFault = (request: IncomingMessage): Refusal | undefined =>
  mayHaveBody(request) || !hasBody(request)
    ? undefined
    : new Refusal(
        400,
        'body',
        `the ${request.method} request has a body; allowed: none with GET, HEAD, DELETE, OPTIONS, TRACE and CONNECT`,
      )
