// A fault: a broken rule and its details, in printable ASCII of bounded length, so that nothing hostile reaches a terminal. Checks
// throw it, as fast-check expects.

export class Fault extends Error {
  /** The name of the broken rule, the same for every case that breaks it. */
  readonly rule: string
  readonly detail: string
  /** A busy machine may be the reason; such a fault counts only when it happens again. */
  readonly mayBeSlowness: boolean

  constructor(rule: string, detail: unknown = '', mayBeSlowness = false) {
    const shown = cut(String(detail), 300)
    super(`${rule}: ${shown}`)
    this.rule = rule
    this.detail = shown
    this.mayBeSlowness = mayBeSlowness
  }
}

/** @throws Fault where the rule does not hold */
export function demand(holds: unknown, rule: string, detail: unknown = ''): asserts holds {
  if (!holds) throw new Fault(rule, detail)
}

/** @throws Fault that a busy machine may be the reason of */
export function demandInTime(holds: unknown, rule: string, detail: unknown = ''): asserts holds {
  if (!holds) throw new Fault(rule, detail, true)
}

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
