// What an endpoint is: a function of a request's parameters that answers with a representation.

import type { Chunks } from './connection/connection.ts'
import type { Coding, Encode } from './content-coding.ts'

/** A body for a GET or HEAD, with what goes before it. */
export type Representation = {
  readonly tag: string
  /** JSON unless given. */
  readonly type?: string
  /** Header lines of a 200 and a 304 alike, which stay the same for its bytes. */
  readonly headers: string
  /** Those that change with the instant. */
  readonly fresh?: string
  /** The request headers that it depends on; the encoding and the key unless given. */
  readonly vary?: string
  readonly chunks: Chunks
  readonly encode: Encode
  /** The heads that were made for it before, where somebody keeps them with its bytes. */
  readonly heads?: Heads
  /** The cache result as in `cache-status`, for answers with weather. */
  readonly cache?: string
  /** The cell of that weather. */
  readonly cell?: string
}

/** The heads of the responses with one body, up to what changes with the instant, by coding; `none` is that of a 304. */
export type Heads = {
  [coding in Coding | 'identity' | 'none']?: { readonly length: number; readonly text: string }
}

/** Answers a GET or HEAD. @throws Problem */
export type Endpoint = (request: {
  /** Path parameters by name, decoded; never empty. */
  readonly params: Readonly<Record<string, string>>
  /** The query as it came, without its question mark. */
  readonly query: string
  /** The id of the key that it came with; undefined for tools, which have none. */
  readonly keyId?: string | undefined
}) => Representation | Promise<Representation>
