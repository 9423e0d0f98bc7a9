// A line of a gateway's log as its fields, whatever a container's runtime puts around it.

import { InputError } from './errors.ts'
import { quoted } from './outside-text.ts'

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
