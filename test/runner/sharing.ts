// Runs several test files in this process, one after the other, each as one test that has the file's name. What such a file
// imports as tap is this test of its own: its set-up, its folder and what it tears down end with it, before the next file begins.

import { registerHooks } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { SkippedFile } from '../support/skip-file.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const scheme = 'test-of:'
/** By the address of the file; what it imports as tap reads it here. */
export const testOf: Map<string, Test> = new Map()

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'tap' && testOf.has(context.parentURL ?? '')
      ? { url: `${scheme}${context.parentURL}`, format: 'module', shortCircuit: true }
      : next(specifier, context),
  load: (url, context, next) =>
    url.startsWith(scheme)
      ? {
          format: 'module',
          source: `import { testOf } from '${import.meta.url}'
            export default testOf.get(${JSON.stringify(url.slice(scheme.length))})`,
          shortCircuit: true,
        }
      : next(url, context),
})

/**
 * @param from the address of the file that has the list
 * @param files their paths from there, in the order in which they run
 */
export const runTogether = async (from: string, files: readonly string[]): Promise<void> => {
  for (const path of files) {
    const file = new URL(path, from).href
    await t.test(relative(root, fileURLToPath(file)), async test => {
      testOf.set(file, test)
      await import(file).catch(error => {
        if (!(error instanceof SkippedFile)) throw error
        test.plan(0, error.message)
      })
    })
  }
}
