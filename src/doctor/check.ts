// The report of `doctor`: a check, its result, and the fix where it fails.

import { messageOf } from '../errors.ts'

export type CheckStatus = 'ok' | 'warn' | 'fail' | 'skip'

/** `detail` is one line. A check that is not well has a fix, an imperative sentence. */
export type Check = {
  readonly name: string
  readonly status: CheckStatus
  readonly detail: string
  readonly fix: string | null
}

export const ok = (name: string, detail: string): Check => ({ name, status: 'ok', detail, fix: null })
export const warn = (name: string, detail: string, fix: string): Check => ({
  name,
  status: 'warn',
  detail,
  fix,
})
export const fail = (name: string, detail: string, fix: string): Check => ({
  name,
  status: 'fail',
  detail,
  fix,
})
/** Not looked at, and why. */
export const skip = (name: string, detail: string): Check => ({ name, status: 'skip', detail, fix: null })

/** The checks, or one that fails with the reason that they threw. */
export const attempted = async (
  name: string,
  fix: string,
  look: () => Promise<readonly Check[]>,
): Promise<readonly Check[]> => {
  try {
    return await look()
  } catch (error) {
    return [fail(name, messageOf(error), fix)]
  }
}
