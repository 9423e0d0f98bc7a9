// Reads bodies and queries. Bodies must declare JSON, so that a page in the operator's browser needs a preflight to send one.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type * as z from 'zod'
import { InputError } from '../../common/errors.ts'
import { quoted, safeText } from '../../common/outside-text.ts'
import { Refusal } from './refusal.ts'

export const longestBodyBytes = 4_096

/** Takes only bodies that are declared as JSON. */
export const takeJsonOnly = (app: FastifyInstance): void => {
  app.removeContentTypeParser('text/plain')
  // Many clients declare JSON and send an empty body, which counts as none.
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) =>
    body === '' ? done(null, undefined) : parseJson(request, String(body), done),
  )
}

/** The form of a body, and what is allowed as text. */
export type BodyForm<Body> = { readonly schema: z.ZodType<Body>; readonly allowed: string }

/** Adds a route with POST. @param handle gets the body as the schema has it */
export const post = <Body>(
  app: FastifyInstance,
  path: string,
  { schema, allowed }: BodyForm<Body>,
  handle: (body: Body, reply: FastifyReply, params: { readonly id: string }) => Promise<object>,
): void => {
  const errorHandler = (error: FastifyError, request: FastifyRequest): void => {
    throw unreadBody(error, request, allowed)
  }
  app.post<{ Params: { id: string } }>(path, { errorHandler }, async ({ body, params }, reply) => {
    const { data, success } = schema.safeParse(body ?? undefined)
    if (success) return handle(data, reply, params)
    const shown = safeText(JSON.stringify(body) ?? 'none', 100)
    throw new InputError(`the body must be ${allowed}, got ${shown}`)
  })
}

/** The refusal of a body that Fastify could not read; other errors as they are. */
const unreadBody = (error: FastifyError, { headers }: FastifyRequest, allowed: string): Error => {
  if (error.code?.startsWith('FST_ERR_CTP_') !== true) return error
  if (error.statusCode === 413)
    return new Refusal(413, 'body', `the body must have at most ${longestBodyBytes} bytes`)
  const sentence =
    error.statusCode === 415
      ? `content-type must be application/json, got ${safeText(headers['content-type'] ?? 'none', 60)}`
      : `the body can't be parsed; it must be ${allowed}`
  return new Refusal(400, 'body', sentence)
}

export type Query = { Querystring: Record<string, string | string[] | undefined> }

/** @throws InputError */
export const textIn = (query: Query['Querystring'], name: string): string | undefined => {
  const given = query[name]
  if (Array.isArray(given)) throw new InputError(`${name} must be given only once`)
  return given
}

/** An integer, by default the usual one. @throws InputError */
export const wholeIn = (
  query: Query['Querystring'],
  name: string,
  usual: number,
  least: number,
  greatest: number,
): number => {
  const given = textIn(query, name)
  if (given === undefined) return usual
  const value = /^\d{1,9}$/.test(given) ? Number(given) : -1
  if (value < least || value > greatest)
    throw new InputError(`${name} must be an integer from ${least} to ${greatest}, got ${quoted(given)}`)
  return value
}
