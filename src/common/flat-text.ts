// Text of the hot path. Joined text is a tree of its parts until it is read, and then a copy of all of them: garbage a moment later.

/** The same text, as one string. */
export const flatText = (text: string): string => {
  // Reading the characters joins the parts in place.
  anything.test(text)
  return text
}
const anything = /^/

// Of a shorter text, a call of Node's costs more than a look at each character.
const shortest = 20

/** Puts text of ASCII into bytes that have room for it, and returns where it ends. */
export const putText = (bytes: Buffer, at: number, text: string): number => {
  const { length } = text
  if (length >= shortest) return at + bytes.write(text, at, 'latin1')
  for (let i = 0; i < length; i++) bytes[at + i] = text.charCodeAt(i)
  return at + length
}
