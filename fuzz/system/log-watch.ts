// Watches the log of a gateway: every line must be one JSON object without a key in any spelling. Keeps the first fault alone,
// because a long run writes gigabytes.

import { Fault } from '../fault.ts'

const maxLineLength = 64 * 1024
const keyLike = /svc_live_[0-9A-Za-z]{8,}/

export type LogWatch = {
  add(chunk: Buffer): void
  /** @throws Fault the first one since the last call */
  check(): void
}

/** @param onLine called for every line that is JSON */
export const createLogWatch = (
  secrets: () => readonly string[],
  onLine: (line: Record<string, unknown>) => void = () => {},
): LogWatch => {
  let found: Fault | undefined
  let rest = ''
  const decoder = new TextDecoder()

  const checkLine = (line: string): void => {
    const record = parse(line)
    if (record) onLine(record)
    else found ??= new Fault('a line of the log is not one JSON object', line)
    if (line.length > maxLineLength) found ??= new Fault('a line of the log is too long', line.length)
    const readable = withoutPercent(line)
    if (!keyLike.test(readable) && !secrets().some(secret => readable.includes(secret))) return
    found ??= new Fault(
      'the log holds a key',
      secrets().reduce((left, secret) => left.replaceAll(secret, '<SECRET>'), line),
    )
  }

  return {
    add: chunk => {
      const texts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = texts.pop() ?? ''
      for (const line of texts) checkLine(line)
    },
    check: () => {
      const fault = found
      found = undefined
      if (fault) throw fault
    },
  }
}

const parse = (line: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isRecord ? (value as Record<string, unknown>) : undefined
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
