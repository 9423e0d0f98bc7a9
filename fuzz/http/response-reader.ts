// Parses what a server sends on one connection as HTTP/1.1, strictly: the first wrong byte ends the parsing with a sentence.
// Clients forgive what a fuzzer must not, and this shares no bug with the code under test.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'

export type Answer = {
  readonly status: number
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  /** Bytes of the status line and the headers. */
  readonly headBytes: number
  readonly body: Buffer
}

/** Whether the next response has no body because the request was HEAD; undefined when that is unknown. */
export type IsHead = (answer: number) => boolean | undefined

const maxHeadBytes = 64 * 1024
const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?[ \t]*$/
const anAnswer = 'HTTP/1.1 '

export const createResponseReader = (isHead: IsHead) => {
  const answers: Answer[] = []
  let rest: Buffer = Buffer.alloc(0)
  let fault: string | undefined
  let closed = false

  /** Takes one response from the beginning of `rest`; false when it is incomplete. @throws Error with the fault */
  const take = (): boolean => {
    if (closed) throw new Error(`bytes behind an answer that said close: ${shown(rest)}`)
    const found = answerIn(rest, isHead(answers.length))
    if (!found) return false
    const { answer, length } = found
    rest = rest.subarray(length)
    if (answer.status < 200) return true
    answers.push(answer)
    closed = answer.headers.get('connection')?.toLowerCase() === 'close'
    return true
  }

  return {
    /** Final responses so far, without those of class 1xx. */
    answers,
    /** What is wrong with the bytes, once something is. */
    get fault() {
      return fault
    },
    /** Whether a response has begun and is not complete. */
    get isInside() {
      return rest.length > 0
    },
    push: (bytes: Buffer): void => {
      if (fault !== undefined) return
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      try {
        while (rest.length > 0 && take());
      } catch (error) {
        fault = (error as Error).message
      }
    },
  }
}

/** The response at the beginning of some bytes, and what it takes of them; undefined when it is incomplete. @throws Error with the fault */
export const answerIn = (
  bytes: Buffer,
  isHead: boolean | undefined,
): { readonly answer: Answer; readonly length: number } | undefined => {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) {
    if (bytes.length > maxHeadBytes) throw new Error('a head that does not end')
    if (!anAnswer.startsWith(textOf(bytes, anAnswer.length)))
      throw new Error(`no status line: ${shown(bytes)}`)
    return undefined
  }
  const { status, headers } = readHead(bytes.toString('latin1', 0, end))
  const headBytes = end + 4
  const behind = bytes.subarray(headBytes)
  const isBodiless =
    status < 200 || status === 204 || status === 304 || (isHead ?? looksBodiless(behind, headers))
  const read = isBodiless ? { body: Buffer.alloc(0), length: 0 } : readBody(headers, behind)
  return read && { answer: { status, headers, headBytes, body: read.body }, length: headBytes + read.length }
}

const textOf = (bytes: Buffer, length: number): string => bytes.toString('latin1', 0, length)
const shown = (bytes: Buffer): string => JSON.stringify(textOf(bytes, 120))

const readHead = (head: string): Pick<Answer, 'status' | 'headers'> => {
  const [first = '', ...lines] = head.split('\r\n')
  const status = statusLine.exec(first)?.[1]
  if (status === undefined) throw new Error(`no status line: ${JSON.stringify(first.slice(0, 120))}`)
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name, value = ''] = fieldLine.exec(line) ?? []
    if (name === undefined) throw new Error(`no header line: ${JSON.stringify(line.slice(0, 120))}`)
    const before = headers.get(name.toLowerCase())
    // CORS and test keys add a line of their own.
    if (before !== undefined && name.toLowerCase() !== 'vary')
      throw new Error(`the header ${name.toLowerCase()} stands there twice`)
    headers.set(name.toLowerCase(), before === undefined ? value : `${before}, ${value}`)
  }
  return { status: Number(status), headers }
}

// Only when it is unknown whether the request was HEAD: the next response begins where the body would.
const looksBodiless = (behind: Buffer, headers: Answer['headers']): boolean =>
  behind.length === 0 ? headers.get('content-length') === '0' : textOf(behind, anAnswer.length) === anAnswer

/** The body at the beginning of the bytes and what it takes of them; undefined when it is incomplete. */
type Read = { body: Buffer; length: number } | undefined
const readBody = (headers: Answer['headers'], bytes: Buffer): Read => {
  const [length, coding] = [headers.get('content-length'), headers.get('transfer-encoding')]
  if (coding !== undefined && length !== undefined)
    throw new Error('both content-length and transfer-encoding')
  if (coding?.toLowerCase() === 'chunked') return readChunks(bytes)
  if (coding !== undefined) throw new Error(`transfer-encoding ${coding}`)
  if (length === undefined) throw new Error('a body without a length')
  if (!/^\d{1,9}$/.test(length)) throw new Error(`content-length ${length}`)
  const size = Number(length)
  return bytes.length < size ? undefined : { body: bytes.subarray(0, size), length: size }
}

const readChunks = (bytes: Buffer): Read => {
  const chunks: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const line = bytes.toString('latin1', at, lineEnd)
    if (!/^[0-9a-f]{1,8}$/i.test(line))
      throw new Error(`no size of a chunk: ${JSON.stringify(line.slice(0, 60))}`)
    const end = lineEnd + 2 + Number.parseInt(line, 16)
    if (bytes.length < end + 2) return undefined
    if (bytes.toString('latin1', end, end + 2) !== '\r\n') throw new Error('a chunk without its end')
    chunks.push(bytes.subarray(lineEnd + 2, end))
    at = end + 2
    if (end === lineEnd + 2) return { body: Buffer.concat(chunks), length: at }
  }
}

const largest = { maxOutputLength: 2 ** 24 }

/** A body without its content-encoding. @throws Error for what is damaged, or larger than any answer */
export const decoded = (bytes: Buffer, coding: string | undefined): Buffer => {
  if (coding === 'gzip') return gunzipSync(bytes, largest)
  return coding === 'br' ? brotliDecompressSync(bytes, largest) : bytes
}
