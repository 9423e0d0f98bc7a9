// The header `traceparent` of W3C Trace Context, read strictly: what is not exactly in its form is as good as none.

export type TraceContext = {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** The span of the caller, 16 hexadecimal digits. */
  readonly spanId: string
  readonly isSampled: boolean
}

// A later version may add fields after the flags.
const form = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const longest = 256

export const traceContextOf = (traceparent: string): TraceContext | undefined => {
  if (traceparent.length > longest) return undefined
  const [, version, traceId, spanId, flags, more] = form.exec(traceparent) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  if (version === '00' && more !== undefined) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
