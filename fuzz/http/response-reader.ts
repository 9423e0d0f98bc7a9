// Parses what a server sends on one connection as HTTP/1.1, strictly: the first wrong byte ends the parsing with a sentence.
// Written for the fuzzer alone, so that it shares no bug with the code under test.

export type Answer = {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Bytes of the status line and the headers. */
  readonly headBytes: number
  readonly body: Buffer
}

export type ResponseReader = {
  /** Final responses so far, without those of class 1xx. */
  readonly answers: readonly Answer[]
  readonly interim: number
  /** What is wrong with the bytes, once something is. */
  readonly fault: string | undefined
  /** Whether a response has begun and is not complete. */
  readonly isInside: boolean
  push(bytes: Buffer): void
}

/** Whether the next response has no body because the request was HEAD; undefined when that is unknown. */
export type IsHead = (answer: number) => boolean | undefined

const maxHeadBytes = 64 * 1024
const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?[ \t]*$/
const headEnd = Buffer.from('\r\n\r\n')
const anAnswer = Buffer.from('HTTP/1.1 ')

export const createResponseReader = (isHead: IsHead): ResponseReader => {
  const answers: Answer[] = []
  let rest: Buffer = Buffer.alloc(0)
  let interim = 0
  let fault: string | undefined
  let closed = false

  /** Reads one response from the beginning of `rest`; false when it is incomplete. @throws Error with the fault */
  const take = (): boolean => {
    const end = rest.indexOf(headEnd)
    if (end === -1) {
      if (rest.length > maxHeadBytes) throw new Error('a head that does not end')
      const begins = anAnswer.subarray(0, Math.min(rest.length, anAnswer.length))
      if (!rest.subarray(0, begins.length).equals(begins)) throw new Error(`no status line: ${text(rest)}`)
      return false
    }
    const { status, headers } = readHead(rest.subarray(0, end).toString('latin1'))
    const headBytes = end + headEnd.length
    const behind = rest.subarray(headBytes)
    if (status < 200) {
      interim += 1
      rest = behind
      return true
    }
    const hasNone =
      status === 204 || status === 304 || (isHead(answers.length) ?? looksBodiless(behind, headers))
    const body = hasNone ? { bytes: Buffer.alloc(0), length: 0 } : readBody(headers, behind)
    if (!body) return false
    answers.push({ status, headers, headBytes, body: body.bytes })
    rest = behind.subarray(body.length)
    if (headers.some(([name, value]) => name === 'connection' && value.toLowerCase() === 'close'))
      closed = true
    return true
  }

  return {
    answers,
    get interim() {
      return interim
    },
    get fault() {
      return fault
    },
    get isInside() {
      return rest.length > 0
    },
    push: bytes => {
      if (fault !== undefined) return
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      try {
        while (rest.length > 0) {
          if (closed) throw new Error(`bytes behind an answer that said close: ${text(rest)}`)
          if (!take()) break
        }
      } catch (error) {
        fault = (error as Error).message
      }
    },
  }
}

const text = (bytes: Buffer): string => JSON.stringify(bytes.subarray(0, 120).toString('latin1'))

const readHead = (head: string): Pick<Answer, 'status' | 'headers'> => {
  const [first = '', ...lines] = head.split('\r\n')
  const status = statusLine.exec(first)?.[1]
  if (status === undefined) throw new Error(`no status line: ${JSON.stringify(first.slice(0, 120))}`)
  const headers = lines.map(line => {
    const [, name, value = ''] = fieldLine.exec(line) ?? []
    if (name === undefined) throw new Error(`no header line: ${JSON.stringify(line.slice(0, 120))}`)
    return [name.toLowerCase(), value] as const
  })
  const names = headers.map(([name]) => name)
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) throw new Error(`the header ${twice} stands there twice`)
  return { status: Number(status), headers }
}

// Only when it is unknown whether the request was HEAD: the next response begins where the body would.
const looksBodiless = (behind: Buffer, headers: Answer['headers']): boolean =>
  behind.length === 0
    ? headers.some(([name, value]) => name === 'content-length' && value === '0')
    : behind.subarray(0, anAnswer.length).equals(anAnswer)

/** The body at the beginning of the bytes and its length in bytes; undefined when it is incomplete. */
const readBody = (
  headers: Answer['headers'],
  bytes: Buffer,
): { bytes: Buffer; length: number } | undefined => {
  const valueFor = (wanted: string) => headers.find(([name]) => name === wanted)?.[1]
  const length = valueFor('content-length')
  const coding = valueFor('transfer-encoding')
  if (coding !== undefined) {
    if (length !== undefined) throw new Error('both content-length and transfer-encoding')
    if (coding.toLowerCase() !== 'chunked') throw new Error(`transfer-encoding ${coding}`)
    return readChunks(bytes)
  }
  if (length === undefined) throw new Error('a body without a length')
  if (!/^\d{1,9}$/.test(length)) throw new Error(`content-length ${length}`)
  const size = Number(length)
  return bytes.length < size ? undefined : { bytes: bytes.subarray(0, size), length: size }
}

const readChunks = (bytes: Buffer): { bytes: Buffer; length: number } | undefined => {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const line = bytes.subarray(at, lineEnd).toString('latin1')
    if (!/^[0-9a-f]{1,8}$/i.test(line))
      throw new Error(`no size of a chunk: ${JSON.stringify(line.slice(0, 60))}`)
    const size = Number.parseInt(line, 16)
    const end = lineEnd + 2 + size
    if (bytes.length < end + 2) return undefined
    if (bytes.subarray(end, end + 2).toString('latin1') !== '\r\n') throw new Error('a chunk without its end')
    parts.push(bytes.subarray(lineEnd + 2, end))
    at = end + 2
    if (size === 0) return { bytes: Buffer.concat(parts), length: at }
  }
}
