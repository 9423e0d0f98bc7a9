// The errors that a test key asks for by the header x-test-error: each code has the status, the body and the headers of the real
// one. The bodies are those of the description of the API, which has one for every code; admission.ts gives them.

import { readFile } from 'node:fs/promises'
import type { ProblemStatus } from '../telemetry/label-values.ts'
import { badRequest, Problem, shortPause } from './problem.ts'
import { challenge, methods, quotaProblem } from './refusals.ts'
import type { RequestState } from './request-state.ts'
import { sentences } from './sentences.ts'

type Described = {
  readonly status: ProblemStatus
  /** Whether it takes a unit, for which its key and its quota are known. */
  readonly counts: boolean
  readonly body: { readonly error: string; readonly code: string }
}

type Document = {
  readonly components: {
    readonly responses: Readonly<
      Record<
        string,
        { readonly content: Readonly<Record<'application/json', { readonly examples: Examples }>> }
      >
    >
  }
  readonly paths: Readonly<Record<string, Readonly<Record<'get', { readonly responses: Responses }>>>>
}
type Examples = Readonly<Record<string, { readonly 'x-counts': boolean; readonly value: Described['body'] }>>
type Responses = Readonly<Record<string, { readonly $ref?: string }>>

/** By code. */
const readErrors = async (): Promise<ReadonlyMap<string, Described>> => {
  const text = await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8')
  const { components, paths } = JSON.parse(text) as Document
  const responses = Object.values(paths)[0]?.get.responses ?? {}
  return new Map(
    Object.entries(responses).flatMap(([status, { $ref = '' }]) => {
      const examples =
        components.responses[$ref.split('/').at(-1) ?? '']?.content['application/json'].examples
      return Object.entries(examples ?? {}).map(([code, { value, 'x-counts': counts }]) => [
        code,
        { status: Number(status) as ProblemStatus, counts, body: value },
      ])
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

/**
 * The problem with a code, for a request that was counted; the state is then what it is with the real one, so that the figures of the
 * quota are too. @param now decides `retry-after`
 */
export const testErrorOf = async (code: string, state: RequestState, now: number): Promise<Problem> => {
  known ??= readErrors()
  const found = (await known).get(code)
  if (!found) return badRequest(sentences.testErrorUnknown(code))
  const { status, counts, body } = found
  const limit = state.client?.limit ?? 0
  if (!counts) state.remaining = 0
  if (code === 'quota_exhausted') return quotaProblem(limit, state.resetsAt, now)
  // Refused before the key and its quota are known.
  if (!counts && status !== 429) {
    state.client = null
    state.isDecided = false
  }
  const { error, code: _, ...fields } = body
  return new Problem(status, { code, text: error }, headersOf[status] ?? {}, { fields })
}
