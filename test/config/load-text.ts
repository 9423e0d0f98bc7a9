// Loads config files from text in a test: the configuration, or the sentences of the refusal.

import type { Test } from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { InputError } from '../../src/errors.ts'

type Given = { files?: readonly string[]; env?: NodeJS.ProcessEnv }

const written = (t: Test, texts: readonly string[]) => {
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
  try {
    loadConfig({ files: on.files, env })
    return []
  } catch (thrown) {
    if (!(thrown instanceof InputError)) throw thrown
    return thrown.message.replaceAll(`${on.folder}/`, '').split('\n')
  }
}
