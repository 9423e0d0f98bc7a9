// Reads the answers that a server sent over HTTP/2, for a client that allows no table of headers: the status is then in plain
// sight at the beginning of a head. Written for the fuzzer alone, so that it shares no bug with the code under test.

export type Http2Stream = {
  /** Undefined where the head has none that can be read. */
  readonly status: number | undefined
  readonly body: Buffer
  /** The server has said that this is all. */
  readonly isEnded: boolean
}

/** The payload of the settings under which a server puts nothing into a table of headers. */
export const noHeaderTable = Buffer.from([0, 1, 0, 0, 0, 0])

/** The streams on which an answer has begun, by number. */
export const readStreams = (received: Buffer): ReadonlyMap<number, Http2Stream> => {
  const streams = new Map<number, Http2Stream>()
  for (let at = 0; at + frameHead <= received.length; ) {
    const end = at + frameHead + received.readUIntBE(at, 3)
    if (end > received.length) break
    const [type, flags = 0] = received.subarray(at + 3, at + 5)
    const number = received.readUInt32BE(at + 5)
    const payload = received.subarray(at + frameHead, end)
    const { status, body } = streams.get(number) ?? { status: statusOf(payload), body: Buffer.alloc(0) }
    const isEnded = (flags & 1) === 1
    if (type === headers) streams.set(number, { status, body, isEnded })
    if (type === data) streams.set(number, { status, body: Buffer.concat([body, payload]), isEnded })
    at = end
  }
  return streams
}

const frameHead = 9
const data = 0
const headers = 1

// RFC 7541: the statuses of the static table, from its place 8 on, and the codes of the digits.
const indexed = [200, 204, 206, 304, 400, 404, 500]
const firstIndex = 8
const digits = new Map(
  ['00000', '00001', '00010', '011001', '011010', '011011', '011100', '011101', '011110', '011111'].map(
    (code, digit) => [code, digit] as const,
  ),
)

const statusOf = (block: Buffer): number | undefined => {
  let at = 0
  // Updates of the table's size.
  while (((block[at] ?? 0) & 0xe0) === 0x20) at += 1
  const first = block[at] ?? 0
  if (first >= 0x80) return indexed[first - 0x80 - firstIndex]
  const name = first >= 0x40 ? first - 0x40 : first & 0x0f
  if (name < firstIndex || name >= firstIndex + indexed.length) return undefined
  const length = block[at + 1] ?? 0
  const value = block.subarray(at + 2, at + 2 + (length & 0x7f))
  return Number((length & 0x80) === 0 ? value.toString('latin1') : fromHuffman(value))
}

const fromHuffman = (bytes: Buffer): string => {
  let text = ''
  let code = ''
  for (const byte of bytes)
    for (const bit of byte.toString(2).padStart(8, '0')) {
      code += bit
      const digit = digits.get(code)
      if (digit === undefined) continue
      text += digit
      code = ''
    }
  return text
}
