// Loads config files from text in a test: the configuration, or the sentences of the refusal.

import type { Test } from 'tap'
import { InputError } from '../../src/common/errors.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'

type Given = { files?: readonly string[]; env?: NodeJS.ProcessEnv }

const written = (t: Test, texts: readonly string[]) => {
  // A folder costs more than the rest of a test of variables.
  if (texts.length === 0) return { folder: undefined, files: [] }
  const names = ['one.yaml', 'two.yaml', 'three.yaml'].slice(0, texts.length)
  const folder = t.testdir(Object.fromEntries(names.map((name, index) => [name, texts[index] ?? ''])))
  return { folder, files: names.map(name => `${folder}/${name}`) }
}

/** Loads the texts as files one.yaml, two.yaml, three.yaml. */
export const loadTexts = (t: Test, { files = [], env = {} }: Given): Config =>
  loadConfig({ files: written(t, files).files, env })

/** The lines of the refusal, with bare file names; empty when nothing was refused. */
export const faultsOfTexts = (t: Test, { files = [], env = {} }: Given): string[] => {
  const on = written(t, files)
  return faultsIn(on.folder, on.files, env)
}

/** The same for each text alone, as a file one.yaml: all of them are written into one folder. */
export const faultsOfEach = (t: Test, texts: readonly string[]): string[][] => {
  const folder = t.testdir(Object.fromEntries(texts.map((text, i) => [`alone-${i}`, { 'one.yaml': text }])))
  return texts.map((_, i) => faultsIn(`${folder}/alone-${i}`, [`${folder}/alone-${i}/one.yaml`], {}))
}

const faultsIn = (folder: string | undefined, files: string[], env: NodeJS.ProcessEnv): string[] => {
  try {
    loadConfig({ files, env })
    return []
  } catch (thrown) {
    if (!(thrown instanceof InputError)) throw thrown
    const message = folder === undefined ? thrown.message : thrown.message.replaceAll(`${folder}/`, '')
    return message.split('\n')
  }
}
