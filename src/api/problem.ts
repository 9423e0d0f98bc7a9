// The response to a request that is refused or fails: status, code, sentence, where the reference explains it, and headers.

import { AbohawaError } from '../common/errors.ts'
import type { ProblemStatus } from '../telemetry/label-values.ts'
import { failureSentence, type Sentence, sentences } from './sentences.ts'

export const jsonType = 'application/json; charset=utf-8'

type Fields = Readonly<Record<string, unknown>>

/** A refusal of one request; thrown where the reason is found, sent by the listener. */
export class Problem extends Error {
  override name = 'Problem'
  readonly status: ProblemStatus
  readonly code: string
  readonly parameter: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** Nothing that follows on the connection can be trusted to be a request. */
  readonly endsConnection: boolean
  /** In the body, beside sentence and code. */
  readonly fields: Fields

  constructor(
    status: ProblemStatus,
    { code, text, parameter }: Sentence,
    headers: Readonly<Record<string, string>> = {},
    { endsConnection = false, fields = {} }: { endsConnection?: boolean; fields?: Fields } = {},
  ) {
    super(text)
    this.status = status
    this.code = code
    this.parameter = parameter
    this.headers = headers
    this.endsConnection = endsConnection
    this.fields = fields
  }
}

export const badRequest = (sentence: Sentence) => new Problem(400, sentence)
/** A request that breaks the rules of HTTP itself; its connection ends. */
export const badHttp = (sentence: Sentence) => new Problem(400, sentence, {}, { endsConnection: true })
export const notFound = (sentence: Sentence) => new Problem(404, sentence)

const shortPauseSeconds = 10
/** The header of a failure whose end is unknown. */
export const shortPause = { 'retry-after': String(shortPauseSeconds) } as const

/** A failure as its consumer gets it: always 500 with `retry-after`. */
export const problemOf = (error: unknown, now: number): Problem => {
  if (error instanceof Problem) return error
  const sentence = error instanceof AbohawaError ? failureSentence(error.code) : sentences.unexpected
  const retryAt = error instanceof Error && 'retryAt' in error ? Number(error.retryAt) : Number.NaN
  const seconds = Number.isNaN(retryAt) ? shortPauseSeconds : Math.max(1, Math.ceil((retryAt - now) / 1000))
  return new Problem(500, sentence, { 'retry-after': String(seconds) })
}

/** The id of the row that explains a code, on the page of the reference. */
export const anchorOf = (code: string): string => `error-${code}`

export type DocUrl = (code: string) => string

/** @param publicUrl `server.publicUrl`; without it URLs are paths, because a client may claim any host */
export const createDocUrl =
  (publicUrl: string | null): DocUrl =>
  code =>
    `${publicUrl ?? ''}/docs#${anchorOf(code)}`

/** The body of every failure, as JSON, and the header lines that belong to it. */
export const problemResponse = ({ message, code, parameter, fields, headers }: Problem, docUrl: DocUrl) => {
  // JSON leaves out a parameter that is undefined.
  const body = Buffer.from(
    JSON.stringify({ error: message, code, parameter, doc_url: docUrl(code), ...fields }),
  )
  const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const lines = `content-type: ${jsonType}\r\ncontent-length: ${body.length}\r\ncache-control: no-store\r\n`
  return { body, lines: lines + own.join('') }
}
