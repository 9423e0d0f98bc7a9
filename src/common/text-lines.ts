// Items from lines of text that come as chunks of bytes. A line that does not end is skipped up to its end, so that memory is bounded.

import { InputError } from './errors.ts'
import { quoted } from './outside-text.ts'

/** Undefined for a valid line without an item, null for one that is left out on purpose. @throws InputError */
export type ReadLine<Item> = (line: string) => Item | undefined | null

type LinesRead = {
  /** Counts right lines without an item. */
  readonly found: { skippedLines: number }
  /** Why the chunks ended before the text does. */
  readonly failure?: string | undefined
  /** Told what is wrong with a line; throws on what is no InputError. */
  onFault(line: number, fault: unknown): void
}

const newLine = 0x0a
/** Of a line, in bytes. */
const longestLine = 256 * 1024

/** The items of lines that end with `\n` or `\r\n`, many at a time; those of a chunk together. */
export async function* readLines<Item>(
  chunks: AsyncIterable<Buffer>,
  reading: LinesRead,
  readLine: ReadLine<Item>,
): AsyncGenerator<Item[], void, undefined> {
  let rest: Buffer[] = []
  let restLength = 0
  let isSkipping = false
  let line = 1

  const itemsIn = (bytes: readonly Buffer[]): Item[] => {
    const text = Buffer.concat(bytes).toString()
    const items: Item[] = []
    // A mark of UTF-8 that editors put before the text.
    for (const each of (line === 1 ? text.replace(/^\ufeff/, '') : text).split('\n')) {
      try {
        const given = unwrapped(each.endsWith('\r') ? each.slice(0, -1) : each)
        const item = given === '' ? undefined : readLine(given)
        if (item) items.push(item)
        else if (item === undefined && given !== '') reading.found.skippedLines += 1
      } catch (thrown) {
        reading.onFault(line, thrown)
      }
      line += 1
    }
    return items
  }

  for await (const chunk of chunks) {
    let begin = 0
    if (isSkipping) {
      begin = chunk.indexOf(newLine) + 1
      if (begin === 0) continue
      isSkipping = false
      line += 1
    }
    const end = chunk.lastIndexOf(newLine) + 1
    if (end > begin) {
      const ended = [...rest, chunk.subarray(begin, end - 1)]
      rest = []
      restLength = 0
      yield itemsIn(ended)
      begin = end
    }
    if (begin < chunk.length) {
      rest.push(chunk.subarray(begin))
      restLength += chunk.length - begin
    }
    if (restLength > longestLine) {
      reading.onFault(line, new InputError(`the line is longer than ${longestLine} bytes`))
      rest = []
      restLength = 0
      isSkipping = true
    }
  }
  // The rest after the last line break is a part of a line.
  if (reading.failure !== undefined) reading.onFault(line, cutOff(reading.failure))
  else if (restLength > 0) yield itemsIn(rest)
}

export const cutOff = (failure: string): InputError =>
  new InputError(`${failure}; the rest of the file could not be read`)

/** The line of a program in the JSON that Docker keeps of it (`{"log":"…\\n","stream":"stdout",…}`); other lines as they are. */
export const unwrapped = (line: string): string => {
  if (!line.startsWith('{"log":"')) return line
  try {
    const { log, stream } = JSON.parse(line)
    return typeof log === 'string' && typeof stream === 'string' ? log.trimEnd() : line
  } catch {
    return line
  }
}

/** The fields of a line of a log in JSON; a runtime may write something before it: a time, the name of a container. @throws InputError */
export const logFieldsOf = (line: string): Readonly<Record<string, unknown>> => {
  const begin = line.startsWith('{') ? 0 : line.indexOf('{"level":')
  try {
    if (begin >= 0) return JSON.parse(begin === 0 ? line : line.slice(begin))
  } catch {}
  throw new InputError(`${quoted(line)} is not JSON`)
}
