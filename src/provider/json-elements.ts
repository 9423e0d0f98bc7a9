// The elements of a JSON list one after the other while its bytes come in, so that a long list is never in memory as a
// whole and others have their turn in between. Whether an element is as it should be is for its reader.

// Bytes that mean something outside of strings, by kind; 0 for all others.
const [quoting, opening, closing, parting] = [1, 2, 3, 4]
const kinds = new Uint8Array(256)
const [quote = 0, backslash = 0, comma = 0, openList = 0, closeList = 0, openObject = 0, closeObject = 0] =
  Buffer.from('"\\,[]{}')
kinds[quote] = quoting
kinds[openList] = kinds[openObject] = opening
kinds[closeList] = kinds[closeObject] = closing
kinds[comma] = parting
const blanks: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n'))

/**
 * The values of a list; the one value of a text that is none. Lazy: what is wrong is found when it is reached.
 * @param pieces of the text in UTF-8, cut anywhere
 * @throws SyntaxError where the text is no JSON or ends too soon
 */
export async function* elementsOf(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<unknown> {
  let at: 'start' | 'list' | 'end' | 'single' = 'start'
  let count = 0
  let kept: Uint8Array[] = []
  const endIn = createElementEnd()
  for await (const piece of pieces) {
    let from = 0
    if (at === 'start') {
      from = afterBlanks(piece, 0)
      if (from === piece.length) continue
      at = piece[from] === openList ? 'list' : 'single'
      if (at === 'list') from += 1
    }
    if (at === 'single') kept.push(piece.subarray(from))
    while (at === 'list') {
      const end = endIn(piece, from)
      kept.push(piece.subarray(from, end))
      if (end === piece.length) break
      const element = joined(kept)
      kept = []
      from = end + 1
      if (piece[end] === closeList) at = 'end'
      else if (piece[end] !== comma) throw new SyntaxError('a list that ends like an object')
      const isEmptyList = at === 'end' && count === 0 && afterBlanks(element, 0) === element.length
      if (!isEmptyList) yield JSON.parse(element.toString())
      count += 1
    }
    if (at === 'end' && afterBlanks(piece, from) < piece.length)
      throw new SyntaxError('something behind the end of the list')
  }
  if (at === 'list') throw new SyntaxError(`a list that does not end after ${count} elements`)
  if (at !== 'end') yield JSON.parse(joined(kept).toString())
}

const joined = (parts: readonly Uint8Array[]): Buffer => {
  const [only] = parts
  return parts.length === 1 && only
    ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
    : Buffer.concat(parts)
}

const afterBlanks = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (at < bytes.length && blanks.has(bytes[at])) at += 1
  return at
}

/** Tells where in a piece the element ends that is being read: at a comma or bracket of the list, or not in this one. */
const createElementEnd = () => {
  // What the piece before left open.
  let depth = 0
  let quoted = false
  let escaped = false

  return (piece: Uint8Array, from: number): number => {
    const { length } = piece
    let at = from
    for (;;) {
      for (; quoted && at < length; at++) {
        if (escaped) escaped = false
        else if (piece[at] === backslash) escaped = true
        else if (piece[at] === quote) quoted = false
      }
      while (at < length && kinds[piece[at] as number] === 0) at += 1
      if (at >= length) return length
      const kind = kinds[piece[at] as number]
      if (kind === quoting) quoted = true
      else if (kind === opening) depth += 1
      else if (depth === 0 && (kind === closing || kind === parting)) return at
      else if (kind === closing) depth -= 1
      at += 1
    }
  }
}
