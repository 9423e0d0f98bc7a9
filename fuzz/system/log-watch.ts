// Watches the log of a gateway: every line must be one JSON object without a key in any spelling. Keeps findings and the
// last lines only, because a long run writes gigabytes.

import { cut, type Finding, finding } from '../finding.ts'

const maxFindings = 20
const maxLineLength = 64 * 1024
const keyLike = /svc_live_[0-9A-Za-z]{8,}/

export type LogWatch = {
  add(chunk: Buffer): void
  /** Returns the findings since the last call, and clears them. */
  findings(): Finding[]
  readonly lines: number
}

/** @param onLine called for every line that is JSON */
export const createLogWatch = (
  secrets: () => readonly string[],
  onLine: (line: Record<string, unknown>) => void = () => {},
): LogWatch => {
  let found: Finding[] = []
  let rest = ''
  let lines = 0
  const decoder = new TextDecoder()
  const report = (rule: string, detail: string): void => {
    if (found.length < maxFindings) found.push(finding(rule, detail))
  }

  const check = (line: string): void => {
    lines += 1
    if (line.length > maxLineLength) report('a line of the log is too long', `${line.length} characters`)
    const record = parse(line)
    if (record === undefined) report('a line of the log is not one JSON object', line)
    else onLine(record)
    const readable = withoutPercent(line)
    if (keyLike.test(readable) || secrets().some(secret => readable.includes(secret)))
      report('the log holds a key', cut(withoutSecrets(line, secrets()), 200))
  }

  return {
    add: chunk => {
      const texts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = texts.pop() ?? ''
      texts.forEach(check)
    },
    findings: () => {
      const now = found
      found = []
      return now
    },
    get lines() {
      return lines
    },
  }
}

const parse = (line: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

// Keys that were encoded twice count too.
const withoutPercent = (text: string): string => {
  let now = text
  for (let i = 0; i < 3 && now.includes('%'); i++)
    now = now.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    )
  return now
}

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((left, secret) => left.replaceAll(secret, '<SECRET>'), text)
