// Text that is used again and again, as one string: the engine keeps what was put together as a tree of pieces, and walks
// through it each time that it is copied.

const anything = /^/

/** The same text. */
export const flatText = (text: string): string => {
  // Looking at the characters joins the pieces in place.
  anything.test(text)
  return text
}
