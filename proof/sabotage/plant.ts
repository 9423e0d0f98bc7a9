// Plants one fault in the product: a module is loaded with one text of it replaced. Must be called before the module is loaded. A
// text that is no longer in its file, or is there twice, is an error, so that no sabotage passes by planting nothing.

import { readFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type Sabotage, sabotages } from './sabotages.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The file of a sabotage with its fault. @throws Error when the text is not there exactly once */
export const sabotagedSource = ({ name, file, text, replacement }: Sabotage): string => {
  const source = readFileSync(`${root}${file}`, 'utf8')
  const times = source.split(text).length - 1
  if (times !== 1)
    throw new Error(`${name}: ${file} must hold the text to replace once, got it ${times} times`)
  return source.replace(text, () => replacement)
}

/** @throws Error for an unknown name, and as `sabotagedSource` does */
export const plant = (name: string): void => {
  const sabotage = sabotages.find(each => each.name === name)
  if (!sabotage) throw new Error(`there is no sabotage ${name}`)
  const source = stripTypeScriptTypes(sabotagedSource(sabotage), { mode: 'strip' })
  registerHooks({
    load: (url, context, nextLoad) =>
      url.endsWith(`/${sabotage.file}`)
        ? { format: 'module', shortCircuit: true, source }
        : nextLoad(url, context),
  })
}
