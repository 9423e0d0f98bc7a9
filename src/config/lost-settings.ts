// Notices that a config file was emptied or cut off: YAML that ends early is right all the same, and would put live settings back
// to their defaults while the gateway runs. Compares with what was in effect before; whether a file is right is for load.ts.

import { hash } from 'node:crypto'
import type { ConfigFault, ConfigFile } from './load.ts'

export type LostSettings = {
  /** A fault for each file that is empty or cut off. */
  faultsIn(files: readonly ConfigFile[]): ConfigFault[]
  /** These files are in effect from now on. */
  accept(files: readonly ConfigFile[]): void
}

// Of texts that were in effect: to take back what was appended leaves the beginning of a file, and is no loss.
const maxFormer = 100

const blank = /^\s*$/
const remark = /^\s*#/

/** Whether a file loses nothing but blanks and comments when it ends after this text. */
const losesNothing = (text: string, rest: string): boolean =>
  rest.split('\n').every((line, i) => blank.test(line) || (remark.test(line) && (i > 0 || /\s$/.test(text))))

/** @param running the files in effect; undefined where they are not known, so that nothing is lost the first time */
export const createLostSettings = (running: readonly ConfigFile[] = []): LostSettings => {
  let inEffect = running
  const former = new Set<string>()
  const idOf = ({ name, text }: ConfigFile): string => hash('sha256', `${name}\n${text}`)

  const faultIn = (file: ConfigFile): string | undefined => {
    const before = inEffect.find(({ name }) => name === file.name)
    if (!before || before.settings === 0 || former.has(idOf(file))) return undefined
    const isMeant = 'if that is meant, restart the gateway'
    if (file.settings === 0)
      return `the file sets nothing any more, where it gave ${before.settings} settings before; ${isMeant}`
    const isCut =
      before.text.startsWith(file.text) && !losesNothing(file.text, before.text.slice(file.text.length))
    if (!isCut) return undefined
    const lines = file.text.trimEnd().split('\n').length
    return `the file ends after line ${lines}, where the former one goes on, and looks cut off; ${isMeant}, or end it with a comment`
  }
  return {
    faultsIn: files =>
      files.flatMap(file => {
        const reason = faultIn(file)
        return reason === undefined ? [] : [{ file: file.name, sentence: `${file.name}: ${reason}` }]
      }),
    accept: files => {
      for (const file of inEffect) former.add(idOf(file))
      for (const oldest of former) if (former.size > maxFormer) former.delete(oldest)
      inEffect = files
    },
  }
}
