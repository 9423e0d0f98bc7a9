// Lines of text out of chunks of bytes, many at a time. A line that does not end is skipped up to where it does, so that
// memory is bounded whatever comes.

import { UnpackingError } from './file-bytes.ts'

/** Lines that follow each other; the first has the number `from`, counted from 1. */
export type Lines = { readonly from: number; readonly lines: readonly string[] }

export type LineFault = (line: number, reason: string) => void

const newLine = 0x0a
/** Of a line, in bytes. */
const longestLine = 256 * 1024

/** Without their line breaks, `\n` or `\r\n`. A file that can't be unpacked to its end is a fault, and ends. */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  onFault: LineFault,
): AsyncGenerator<Lines, void, undefined> {
  let rest: Buffer[] = []
  let restLength = 0
  let isSkipping = false
  let line = 1
  // A mark of UTF-8 that editors put before the text.
  const withoutMark = (text: string) => (line === 1 ? text.replace(/^\ufeff/, '') : text)
  const tooLong = () => onFault(line, `the line is longer than ${longestLine} bytes`)

  try {
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
        const text = Buffer.concat([...rest, chunk.subarray(begin, end - 1)]).toString()
        rest = []
        restLength = 0
        const lines = withoutReturns(withoutMark(text))
        yield { from: line, lines }
        line += lines.length
        begin = end
      }
      if (begin < chunk.length) {
        rest.push(chunk.subarray(begin))
        restLength += chunk.length - begin
      }
      if (restLength > longestLine) {
        tooLong()
        rest = []
        restLength = 0
        isSkipping = true
      }
    }
  } catch (thrown) {
    if (!(thrown instanceof UnpackingError)) throw thrown
    // The rest after the last line break is a part of a line.
    onFault(line, `${thrown.message}; the rest of the file could not be read`)
    return
  }
  if (restLength > 0) yield { from: line, lines: withoutReturns(withoutMark(Buffer.concat(rest).toString())) }
}

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

const withoutReturns = (text: string): string[] =>
  (text.includes('\r') ? text.replaceAll('\r\n', '\n').replace(/\r$/, '') : text).split('\n')
