// Gives gateways of tests other values of what is no setting (src/config/constants.ts), such as short waits. A test names one as
// it would name a setting: ABOHAWA_TEST_PROVIDER__RETRY_DELAY=1ms. For processes this file is preloaded (`constantsPreload`).

import { constants } from '../../src/config/constants.ts'
import { variableOf } from '../../src/config/environment.ts'
import { parseDuration } from '../../src/config/units.ts'

type Tree = { [key: string]: Tree | number | string }

const standard: Tree = structuredClone(constants) as Tree

const nameOf = (path: readonly string[]): string =>
  variableOf(path.map(key => key.replace(/Ms$/, ''))).replace('ABOHAWA_', 'ABOHAWA_TEST_')

const withGiven = (tree: Tree, env: NodeJS.ProcessEnv, above: readonly string[] = []): Tree =>
  Object.fromEntries(
    Object.entries(tree).map(([key, value]) => {
      const path = [...above, key]
      if (typeof value === 'object') return [key, withGiven(value, env, path)]
      const given = env[nameOf(path)]
      if (given === undefined || typeof value === 'string') return [key, given ?? value]
      return [key, key.endsWith('Ms') ? parseDuration(given) : Number(given)]
    }),
  )

/** Every configuration that this process reads from now on has the constants that variables name. */
export const useConstants = (env: NodeJS.ProcessEnv): void => {
  Object.assign(constants, withGiven(standard, env))
}

/** Reads a configuration with the constants that variables name, beside those of this process. */
export const withConstants = <Read>(env: NodeJS.ProcessEnv, read: () => Read): Read => {
  useConstants({ ...process.env, ...env })
  try {
    return read()
  } finally {
    useConstants(process.env)
  }
}

/** The option of Node with which a process takes those of its environment; undefined where there are none. */
export const constantsPreload = (env: NodeJS.ProcessEnv): string | undefined =>
  Object.keys(env).some(name => name.startsWith('ABOHAWA_TEST_')) ? `--import=${import.meta.url}` : undefined

useConstants(process.env)
