// Reads the results of runs from their JSON files. Whatever else a file holds is one sentence with its name.

import { InputError, messageOf } from '../errors.ts'
import { mostFileBytes, readTextFile } from '../regular-file.ts'
import { histogramOf } from './histogram.ts'
import { type ReplayResult, replayResult } from './result.ts'

/**
 * The results of a file, which holds one or a list of them.
 * @throws InputError with the file, what stands in it and what is allowed
 */
export const readResults = async (file: string): Promise<ReplayResult[]> => {
  const text = await readTextFile(file, mostFileBytes.data).catch((thrown: unknown) => {
    throw new InputError(`${file} cannot be read: ${messageOf(thrown)}`, { cause: thrown })
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InputError(`${file} is no JSON; allowed: a result that a replay or a rehearsal wrote`)
  }
  const values = Array.isArray(value) ? value : [value]
  if (values.length === 0) throw new InputError(`${file} holds no result; allowed: one or more`)
  return values.map(each => resultIn(each, file))
}

/** The one result of a file. @throws InputError where there are several */
export const readResult = async (file: string): Promise<ReplayResult> => {
  const [first, ...more] = await readResults(file)
  if (first === undefined || more.length > 0)
    throw new InputError(`${file} holds ${more.length + 1} results; allowed: one, such as of one setting`)
  return first
}

const resultIn = (value: unknown, file: string): ReplayResult => {
  const { data, error } = replayResult.safeParse(value)
  if (data === undefined) {
    const [issue] = error.issues
    const at = issue?.path.length ? `${issue.path.join('.')}: ` : ''
    throw new InputError(
      `${file} is no result of a replay or a rehearsal: ${at}${issue?.message ?? 'not known'}`,
    )
  }
  try {
    histogramOf(data.histogram)
  } catch (cause) {
    throw new InputError(
      `${file} is no result of a replay or a rehearsal: histogram: no compressed HdrHistogram in base64`,
      { cause },
    )
  }
  return data
}
