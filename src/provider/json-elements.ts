// The elements of a JSON list one after the other, so that a long list is never in memory as a whole twice, as text and
// as values, and others have their turn in between. Whether an element is as it should be is for its reader.

/**
 * The values of a list; the one value of a text that is none. Lazy: what is wrong is found when it is reached.
 * @throws SyntaxError where the text is no JSON or ends too soon
 */
export function* elementsOf(text: string): Generator<unknown> {
  let at = afterBlanks(text, 0)
  if (text[at] !== '[') {
    yield JSON.parse(text)
    return
  }
  at = afterBlanks(text, at + 1)
  for (let more = text[at] !== ']'; more; ) {
    const end = elementEnd(text, at)
    yield JSON.parse(text.slice(at, end))
    at = afterBlanks(text, end)
    more = text[at] === ','
    if (more) at += 1
  }
  if (text[at] !== ']' || afterBlanks(text, at + 1) < text.length)
    throw new SyntaxError(`a list that does not end at ${at} of ${text.length} characters`)
}

const afterBlanks = (text: string, from: number): number => {
  let at = from
  while (at < text.length && text.charCodeAt(at) <= 0x20) at += 1
  return at
}

const [quote, backslash, comma, openList, closeList, openObject, closeObject] = Buffer.from('"\\,[]{}')

/** Where the element ends that begins at `from`: at a comma or bracket of the list, or with the text. */
const elementEnd = (text: string, from: number): number => {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === quote) at = stringEnd(text, at)
    else if (character === openObject || character === openList) depth += 1
    else if (character === closeObject || character === closeList) {
      if (depth === 0) return at
      depth -= 1
    } else if (character === comma && depth === 0) return at
  }
  return text.length
}

const stringEnd = (text: string, from: number): number => {
  for (let at = from + 1; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === backslash) at += 1
    else if (character === quote) return at
  }
  return text.length
}
