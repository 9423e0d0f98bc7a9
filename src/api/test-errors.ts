// The errors that a test key requests by the header x-test-error, with the status, body and headers of the real ones. They are those of
// the OpenAPI document, which has every code.

import { readFile } from 'node:fs/promises'
import { apiPrefix, keyPath } from '../common/endpoints.ts'
import type { Client } from '../keys/authentication.ts'
import { type KeyRate, newRate } from '../keys/rates.ts'
import type { ProblemStatus } from '../telemetry/label-values.ts'
import { badRequest, Problem, shortPause } from './problem.ts'
import { challenge, methods, quotaProblem, rateProblem } from './refusals.ts'
import type { RequestState } from './request-state.ts'
import { type Sentence, sentences } from './sentences.ts'

type Body = Sentence & {
  readonly error: string
  readonly doc_url: string
  readonly remaining?: number
  readonly cost?: number
}
type Example = { readonly 'x-counts': boolean; readonly value: Body }
type Response = { readonly content: { 'application/json': { examples: Readonly<Record<string, Example>> } } }
type Document = {
  readonly paths: Readonly<
    Record<string, { get: { responses: Readonly<Record<string, { $ref?: string }>> } }>
  >
  readonly components: { readonly responses: Readonly<Record<string, Response>> }
}
type Described = { readonly status: ProblemStatus; readonly counts: boolean; readonly body: Body }

/** By code. Every endpoint has the same errors. */
const readErrors = async (): Promise<ReadonlyMap<string, Described>> => {
  const text = await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8')
  const { paths, components } = JSON.parse(text) as Document
  const responses = Object.entries(paths[`${apiPrefix}${keyPath}`]?.get.responses ?? {})
  return new Map(
    responses.flatMap(([status, { $ref }]) => {
      const { content } = components.responses[$ref?.split('/').at(-1) ?? ''] ?? {}
      return Object.entries(content?.['application/json'].examples ?? {}).map(
        ([code, { 'x-counts': counts, value }]) =>
          [code, { status: Number(status) as ProblemStatus, counts, body: value }] as const,
      )
    }),
  )
}

const headersOf: Readonly<Partial<Record<ProblemStatus, Readonly<Record<string, string>>>>> = {
  401: challenge,
  405: methods,
  429: { 'retry-after': '1' },
  500: shortPause,
}

let known: Promise<ReadonlyMap<string, Described>> | undefined

/** The problem with a code. The state of the request becomes that of the real error, and so do its quota figures. */
export const testErrorOf = async (code: string, state: RequestState, now: number): Promise<Problem> => {
  // A file that can't be read now may be there later.
  known ??= readErrors().catch((error: unknown) => {
    known = undefined
    throw error
  })
  const found = (await known).get(code)
  if (!found) return badRequest(sentences.testErrorUnknown(code))
  const { status, counts, body } = found
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

/** `remaining` is that of the document; the cost is that of the request, or one that exceeds it. */
const shortOfUnits = ({ remaining = 0, cost }: Body, state: RequestState, now: number): Problem => {
  state.remaining = remaining
  if (cost !== undefined) state.cost = Math.max(cost, state.cost ?? 0)
  return quotaProblem(state.client?.limit ?? 0, state.resetsAt, now, state.cost, remaining)
}

/** By a limit of the key, or by one request a second. */
const tooFast = (state: RequestState, client: Client, now: number): Problem => {
  const limits = client.rates ?? { perSecond: 1, burst: null, perMinute: null }
  const rate = newRate(client.keyId, limits, state.arrivedAt)
  const [bucket] = rate.buckets as [KeyRate['buckets'][number]]
  bucket.tokens = 0
  state.client = { ...client, rate }
  return rateProblem({ policy: bucket.policy, limit: bucket.limit, waitMs: 1 / bucket.perMs }, now)
}
