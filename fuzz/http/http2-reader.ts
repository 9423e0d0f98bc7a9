// Reads the answers that a server sent over HTTP/2, for a client that allows no table of headers: the status is then in plain
// sight at the beginning of a head. Shares no bug with the code under test.

export type Http2Stream = {
  /** Undefined where the head has none that can be read. */
  readonly status: number | undefined
  readonly body: Buffer
  /** The server has said that this is all. */
  readonly isEnded: boolean
}

/** The payload of the settings under which a server puts nothing into a table of headers. */
export const noHeaderTable = Buffer.from([0, 1, 0, 0, 0, 0])

const frameHead = 9
const [data, headers] = [0, 1]

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

// RFC 7541: the statuses of the static table, from its place 8 on, and the codes of the digits, padded with ones.
const indexed = [200, 204, 206, 304, 400, 404, 500]
const firstIndex = 8
const codeOf = (digit: string): string =>
  Number(digit) < 3
    ? Number(digit).toString(2).padStart(5, '0')
    : (22 + Number(digit)).toString(2).padStart(6, '0')
const inHuffman = new Map(
  Array.from({ length: 500 }, (_, i) => {
    const bits = [...String(100 + i)].map(codeOf).join('')
    return [Number.parseInt(bits.padEnd(Math.ceil(bits.length / 8) * 8, '1'), 2), 100 + i]
  }),
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
  return (length & 0x80) === 0
    ? Number(value.toString('latin1'))
    : inHuffman.get(Number.parseInt(value.toString('hex'), 16))
}
