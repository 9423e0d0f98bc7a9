// Watches the log of a gateway: every line must be one JSON object without a key in any spelling. Keeps the first fault alone,
// because a long run writes gigabytes.

import { Fault } from '../fault.ts'

const maxLineLength = 64 * 1024
const keyLike = /svc_(?:live|test)_[0-9A-Za-z]{8,}/

/** @param secret of the key that is used @param onLine called for every line that is JSON */
export const createLogWatch = (
  secret: string,
  onLine: (line: Record<string, unknown>) => void = () => {},
) => {
  let found: Fault | undefined
  let rest = ''
  const decoder = new TextDecoder()

  const checkLine = (line: string): void => {
    try {
      const record: unknown = JSON.parse(line)
      if (typeof record !== 'object' || record === null || Array.isArray(record)) throw new Error('none')
      onLine(record as Record<string, unknown>)
    } catch {
      found ??= new Fault('a line of the log is not one JSON object', line)
    }
    if (line.length > maxLineLength) found ??= new Fault('a line of the log is too long', line.length)
    const readable = withoutPercent(line)
    if (keyLike.test(readable) || readable.includes(secret))
      found ??= new Fault('the log holds a key', line.replaceAll(secret, '<SECRET>'))
  }
  return {
    add: (chunk: Buffer): void => {
      const texts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = texts.pop() ?? ''
      for (const line of texts) checkLine(line)
    },
    /** @throws Fault the first one since the last call */
    check: (): void => {
      const fault = found
      found = undefined
      if (fault) throw fault
    },
  }
}

// Keys that were encoded twice count too.
const withoutPercent = (text: string): string => {
  let now = text
  for (let i = 0; i < 3 && now.includes('%'); i++)
    now = now.replaceAll(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)))
  return now
}
