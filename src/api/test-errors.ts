// The errors that a test key asks for by the header x-test-error: each code has the status, the body and the headers of the real
// one. The bodies are those of the description of the API, which has one for every code; admission.ts gives them.

import { readFile } from 'node:fs/promises'
import type { Client } from '../keys/authentication.ts'
import { type KeyRate, newRate } from '../keys/rates.ts'
import type { ProblemStatus } from '../telemetry/label-values.ts'
import { errors } from './error-meanings.ts'
import { badRequest, Problem, shortPause } from './problem.ts'
import { challenge, methods, quotaProblem, rateProblem } from './refusals.ts'
import type { RequestState } from './request-state.ts'
import { type ErrorCode, type Sentence, sentences } from './sentences.ts'

type Body = Sentence & {
  readonly error: string
  readonly doc_url: string
  /** Of a quota that does not suffice. */
  readonly remaining?: number
  readonly cost?: number
}
type Examples = { readonly examples: Readonly<Record<string, { readonly value: Body }>> }
type Document = {
  readonly components: {
    readonly responses: Readonly<
      Record<string, { readonly content: Readonly<Record<'application/json', Examples>> }>
    >
  }
}

/** By code. */
const readBodies = async (): Promise<ReadonlyMap<string, Body>> => {
  const text = await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8')
  const responses = Object.values((JSON.parse(text) as Document).components.responses)
  return new Map(
    responses.flatMap(({ content }) =>
      Object.entries(content['application/json'].examples).map(([code, { value }]) => [code, value]),
    ),
  )
}

const headersOf: Readonly<Partial<Record<ProblemStatus, Readonly<Record<string, string>>>>> = {
  401: challenge,
  405: methods,
  429: { 'retry-after': '1' },
  500: shortPause,
}

let known: Promise<ReadonlyMap<string, Body>> | undefined

/**
 * The problem with a code, for a request that was counted; the state is then what it is with the real one, so that the figures of the
 * quota are too. @param now decides `retry-after`
 */
export const testErrorOf = async (code: string, state: RequestState, now: number): Promise<Problem> => {
  // A file that can't be read may be there the next time.
  known ??= readBodies().catch((error: unknown) => {
    known = undefined
    throw error
  })
  const body = (await known).get(code)
  if (!body) return badRequest(sentences.testErrorUnknown(code))
  const { status, counts } = errors[code as ErrorCode]
  if (code === 'quota_exhausted' || code === 'quota_insufficient') return shortOfUnits(body, state, now)
  if (code === 'rate_limited' && state.client) return tooFast(state, state.client, now)
  const isBound = code.startsWith('key_') && status === 403
  if (isBound && state.cost !== undefined) state.cost = 0
  // Refused before the key and its quota are known.
  if (!counts && status !== 429 && !isBound) {
    state.client = null
    state.remaining = 0
    state.isDecided = false
    state.cost = undefined
  }
  const { error: text, doc_url: _, ...fields } = body
  return new Problem(status, { ...body, text }, headersOf[status] ?? {}, { fields })
}

/** What is left is that of the description; a request costs what it does, or as much as no longer suffices. */
const shortOfUnits = ({ remaining = 0, cost }: Body, state: RequestState, now: number): Problem => {
  state.remaining = remaining
  if (cost !== undefined) state.cost = Math.max(cost, state.cost ?? 0)
  return quotaProblem(state.client?.limit ?? 0, state.resetsAt, now, state.cost, remaining)
}

/** By a limit of the key's own, or else by one request a second. */
const tooFast = (state: RequestState, client: Client, now: number): Problem => {
  const limits = client.rates ?? { perSecond: 1, burst: null, perMinute: null }
  const rate = newRate(client.keyId, limits, state.arrivedAt)
  const [bucket] = rate.buckets as [KeyRate['buckets'][number]]
  bucket.tokens = 0
  state.client = { ...client, rate }
  return rateProblem({ policy: bucket.policy, limit: bucket.limit, waitMs: 1 / bucket.perMs }, now)
}
