// A check of `doctor`: one line of findings, with a fix where one is needed.

import { messageOf } from '../../common/errors.ts'

export type Status = 'ok' | 'warn' | 'fail' | 'skip'

/** `detail` is one line. What is not well has a fix, an imperative sentence. */
export type Finding = { readonly status: Status; readonly detail: string; readonly fix: string | null }

export type Check = Finding & { readonly name: string }

export const ok = (detail: string): Finding => ({ status: 'ok', detail, fix: null })
export const warn = (detail: string, fix: string): Finding => ({ status: 'warn', detail, fix })
export const fail = (detail: string, fix: string): Finding => ({ status: 'fail', detail, fix })
export const skip = (detail: string): Finding => ({ status: 'skip', detail, fix: null })

const fromBest: readonly Status[] = ['skip', 'ok', 'warn', 'fail']

/** The check of some findings: the worst of them count, and what is well is shown where nothing is worse. */
export const checkOf = (name: string, found: readonly Finding[]): Check => {
  const worst = fromBest.findLast(each => found.some(({ status }) => status === each)) ?? 'skip'
  const shown = worst === 'ok' ? found : found.filter(({ status }) => status === worst)
  const fixes = new Set(shown.flatMap(({ fix }) => fix ?? []))
  const detail = shown.map(each => each.detail).join('; ')
  return { name, status: worst, detail, fix: fixes.size === 0 ? null : [...fixes].join(' ') }
}

/** What was found, or a fault with the reason that it threw. */
export const attempted = async (
  fix: string,
  look: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> => {
  try {
    return await look()
  } catch (error) {
    return [fail(messageOf(error), fix)]
  }
}
