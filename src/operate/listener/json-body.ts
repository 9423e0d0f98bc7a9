// Bodies of requests to the ops listener: JSON that says that it is, so that a page in the operator's browser can't send it
// without a preflight; and the sentences for what can't be read. What a body means is for the routes.

import type { FastifyError, FastifyRequest } from 'fastify'
import type * as z from 'zod'
import { InputError } from '../../common/errors.ts'
import { safeText } from '../../common/outside-text.ts'
import { Refusal } from './refusal.ts'
import { longestBodyBytes } from './server.ts'

/** The error handler of a route that takes a body. @param allowed as text */
export const unreadBody =
  (allowed: string) =>
  (error: FastifyError, request: FastifyRequest): void => {
    const isUnread = error.code?.startsWith('FST_ERR_CTP_') === true
    if (!isUnread) throw error
    if (error.statusCode === 413)
      throw new Refusal(413, 'body', `the body is longer than ${longestBodyBytes} bytes; allowed: ${allowed}`)
    const type = request.headers['content-type'] ?? 'missing'
    const sentence =
      error.statusCode === 415
        ? `content-type is ${safeText(type, 60)}; allowed: application/json`
        : `the body can't be read; allowed: ${allowed}`
    throw new Refusal(400, 'body', sentence)
  }

/** The body as a schema has it. @throws InputError */
export const bodyAs = <Value>(schema: z.ZodType<Value>, body: unknown, allowed: string): Value => {
  const { data, success } = schema.safeParse(body)
  if (success) return data
  throw new InputError(`the body is ${safeText(JSON.stringify(body) ?? 'missing', 100)}; allowed: ${allowed}`)
}
