// A finding: a broken rule and its details, in printable ASCII of bounded length, so that nothing hostile reaches a terminal.

export type Finding = {
  /** The name of the broken rule, the same for every case that breaks it. */
  readonly rule: string
  readonly detail: string
  /** True if a busy machine may be the reason; such a finding counts only when it happens again. */
  readonly mayBeSlowness?: boolean
}

const longestDetail = 300

export const finding = (rule: string, detail: string): Finding => ({
  rule,
  detail: cut(detail, longestDetail),
})

/** A finding that a busy machine may be the reason of. */
export const slowness = (rule: string, detail: string): Finding => ({
  ...finding(rule, detail),
  mayBeSlowness: true,
})

/** Printable ASCII of at most `most` characters, followed by the full length. */
export const cut = (text: string, most: number): string => {
  const plain = text.slice(0, 4 * most).replaceAll(/[^\x20-\x7e]/gu, escaped)
  return plain.length <= most ? plain : `${plain.slice(0, most)}... (${text.length} characters)`
}

const escaped = (character: string): string => {
  if (character === '\r') return '\\r'
  if (character === '\n') return '\\n'
  const code = character.codePointAt(0) ?? 0
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}
