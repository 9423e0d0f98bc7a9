// Finds characters in the bytes of an output, decoded as UTF-8, that must not reach a terminal or a log.

/** ESC and the other controls, C1, and signs that change the direction of a line. */
export const hostileText =
  'a\u001b[2J\u001b]0;title\u0007b\r\nc\u0000d\u007fe\u0085f\u009bg\u009d0;x\u009ch\u061ci\u200ej\u200fk\u202al\u202em\u2066n\u2069o\u2028p\u2029q\tr'

/** The first such character of an output, as U+XXXX with the text before it; undefined when there is none. */
export const rawControlIn = (output: string | Buffer): string | undefined => {
  const text = output.toString()
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const isLineBreak = code === 0x0a
    const isControl = code < 0x20 || (code >= 0x7f && code <= 0x9f)
    const turns =
      [0x061c, 0x200e, 0x200f, 0x2028, 0x2029].includes(code) ||
      (code >= 0x202a && code <= 0x202e) ||
      (code >= 0x2066 && code <= 0x2069)
    if ((isControl && !isLineBreak) || turns)
      return `U+${code.toString(16).toUpperCase().padStart(4, '0')} behind ${JSON.stringify(text.slice(Math.max(0, at - 40), at))}`
  }
  return undefined
}
