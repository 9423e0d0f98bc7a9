// Reads the results of runs from JSON files.

import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { safeText } from 'abohawa/common/outside-text.ts'
import { maxFileBytes, readTextFile } from 'abohawa/common/regular-file.ts'
import { checkedCount, histogramOf } from './histogram.ts'
import { type ReplayResult, replayResult } from './result.ts'

/** One result or a list of results. @throws InputError for any other file */
export const readResults = async (file: string): Promise<ReplayResult[]> => {
  if (file === '-') throw new InputError("a result can't be read from standard input; give a file")
  const text = await readTextFile(file, maxFileBytes.result).catch((thrown: unknown) => {
    throw new InputError(
      `${file} can't be read: ${isMissing(thrown) ? 'there is no such file' : messageOf(thrown)}`,
      { cause: thrown },
    )
  })
  if (!hasFewValues(text))
    throw new InputError(`${file} must have at most ${maxValues.toLocaleString('en-US')} commas and brackets`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InputError(`${file} is not JSON; give a result of replay or rehearse`)
  }
  const values = Array.isArray(value) ? value : [value]
  if (values.length === 0 || values.length > maxResults)
    throw new InputError(`${file} must have 1 to ${maxResults} results, got ${values.length}`)
  return values.map(each => resultIn(each, file))
}

const isMissing = (thrown: unknown): boolean => Object(thrown).code === 'ENOENT'

const maxResults = 200

// Values take much more memory than text, so they are counted before parsing.
const maxValues = 1_000_000
const structure = new Set([...',[{'].map(sign => sign.charCodeAt(0)))

const hasFewValues = (text: string): boolean => {
  let values = 0
  for (let i = 0; i < text.length && values <= maxValues; i++)
    if (structure.has(text.charCodeAt(i))) values += 1
  return values <= maxValues
}

const resultIn = (value: unknown, file: string): ReplayResult => {
  const fault = (reason: string, cause?: unknown) =>
    new InputError(`${file} is not a result of replay or rehearse: ${reason}`, { cause })
  const { data, error } = replayResult.safeParse(value)
  if (data === undefined) {
    const [issue] = error.issues
    const at = issue?.path.length ? `${safeText(issue.path.join('.'), 200)}: ` : ''
    throw fault(`${at}${issue?.message ?? 'unknown'}`)
  }
  let values: number
  try {
    values = checkedCount(data.histogram)
    histogramOf(data.histogram)
  } catch (cause) {
    throw fault(`histogram: ${messageOf(cause)}`, cause)
  }
  if (values !== data.latency.count)
    throw fault(`histogram: it has ${values} values, but latency.count is ${data.latency.count}`)
  return data
}
