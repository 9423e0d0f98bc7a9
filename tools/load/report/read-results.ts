// Reads the results of runs from their JSON files. Whatever else a file holds is one sentence with its name.

import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { safeText } from 'abohawa/common/outside-text.ts'
import { maxFileBytes, readTextFile } from 'abohawa/common/regular-file.ts'
import { checkedCount, histogramOf } from './histogram.ts'
import { type ReplayResult, replayResult } from './result.ts'

/** The results of a file, which holds one or a list of them. @throws InputError with the file, what stands in it and what is allowed */
export const readResults = async (file: string): Promise<ReplayResult[]> => {
  if (file === '-') throw new InputError("standard input can't be read here; name the file of a result")
  const text = await readTextFile(file, maxFileBytes.result).catch((thrown: unknown) => {
    throw new InputError(
      `${file} can't be read: ${isMissing(thrown) ? 'there is no such file' : messageOf(thrown)}`,
      { cause: thrown },
    )
  })
  if (!hasFewValues(text))
    throw new InputError(
      `${file} has too many values; allowed: at most ${maxValues.toLocaleString('en-US')}, commas and brackets together`,
    )
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InputError(`${file} is no JSON; allowed: a result that a replay or a rehearsal wrote`)
  }
  const values = Array.isArray(value) ? value : [value]
  if (values.length === 0 || values.length > maxResults)
    throw new InputError(
      `${file} holds ${values.length === 0 ? 'no result' : `${values.length} results`}; allowed: from 1 to ${maxResults}`,
    )
  return values.map(each => resultIn(each, file))
}

const isMissing = (thrown: unknown): boolean => Object(thrown).code === 'ENOENT'

const maxResults = 200

// An empty object is two bytes of text and fifty of memory, and a level of nesting more: counted before they are made.
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
    new InputError(`${file} is no result of a replay or a rehearsal: ${reason}`, { cause })
  const { data, error } = replayResult.safeParse(value)
  if (data === undefined) {
    const [issue] = error.issues
    const at = issue?.path.length ? `${safeText(issue.path.join('.'), 200)}: ` : ''
    throw fault(`${at}${issue?.message ?? 'not known'}`)
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
