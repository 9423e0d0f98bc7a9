// The version of the product, with its commit where that is known: instances between two releases have one number. The commit comes from
// a file `commit`, as an image has it, or from a checkout. Starting git would cost each start some milliseconds.

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import packageFile from '../../package.json' with { type: 'json' }

const shownDigits = 8

/** The commit of the product in a folder, as git abbreviates it; undefined where it is not known. */
export const commitIn = (folder: string): string | undefined => {
  const commit = textIn(join(folder, 'commit')) ?? commitOfCheckout(join(folder, '.git'))
  return commit !== undefined && /^[0-9a-f]{7,64}$/.test(commit) ? commit.slice(0, shownDigits) : undefined
}

const commitOfCheckout = (dotGit: string): string | undefined => {
  // A worktree has a file that names its folder, and shares the branches of another one.
  const [, elsewhere] = /^gitdir: (.+)$/.exec(textIn(dotGit) ?? '') ?? []
  const own = elsewhere === undefined ? dotGit : resolve(dotGit, '..', elsewhere)
  const head = textIn(join(own, 'HEAD'))
  const [, ref] = /^ref: (refs\/[^\0]+)$/.exec(head ?? '') ?? []
  if (ref === undefined) return head
  const shared = resolve(own, textIn(join(own, 'commondir')) ?? '.')
  return (
    textIn(join(shared, ref)) ??
    textIn(join(shared, 'packed-refs'))
      ?.split('\n')
      .find(line => line.endsWith(` ${ref}`))
      ?.split(' ')[0]
  )
}

/** The text of a file without blanks around it; undefined where there is none. */
const textIn = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}

const commit = commitIn(resolve(import.meta.dirname, '../..'))

/** Such as `1.0.0+1a2b3c4d`, or only the number. */
export const version = commit === undefined ? packageFile.version : `${packageFile.version}+${commit}`
