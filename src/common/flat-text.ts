// Text that is used again and again, as one string: the engine keeps concatenated text as a tree of parts, and walks
// through it each time that it is copied.

const anything = /^/

/** The same text. */
export const flatText = (text: string): string => {
  // Reading the characters joins the parts in place.
  anything.test(text)
  return text
}
