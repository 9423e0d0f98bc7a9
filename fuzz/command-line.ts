// Parses the command line of the fuzzer. An invalid one is a usage error: one sentence and exit code 2.

import { randomInt } from 'node:crypto'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { type TargetName, targetNames } from './target.ts'

export type Wish = {
  readonly seed: number
  readonly seconds: number
  readonly only: readonly TargetName[]
  /** One batch of cases: the path that fast-check gave it. */
  readonly path: string | undefined
  readonly json: boolean
  /** The page whose table is to be rewritten. */
  readonly report: string | undefined
}

/** An invalid command line: exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

const [usualSeed, usualSeconds] = [1, 60]

export const usage = `Usage: npm run -s fuzz -- [options]

Attacks a gateway process with a real Redis and a provider, in made-up ways that its seed decides, and checks after
every case what is promised (docs/reliability.md). Needs redis-server on the path.

  --seed <number>        0 to 4294967295, or random; equal seeds give equal cases; default ${usualSeed}
  --seconds <number>     of fuzzing in all, shared out among the targets; ${usualSeconds} by default
  --only <target,…>      ${targetNames.join(', ')}; all by default
  --case <path>          these cases alone, such as 3:0:1; a fault ends with the command; needs one target
  --json                 the results as JSON on standard output
  --report <file>        rewrites the table of what was tried in this page
  --help                 this text

Exit code: 0 nothing found, 1 faults found, 2 usage error.

Example:
  npm run -s fuzz -- --seed 7 --seconds 600 --only sockets,provider
`

const [text, flag] = [{ type: 'string' }, { type: 'boolean' }] as const
const options = { seed: text, seconds: text, only: text, case: text, json: flag, report: text, help: flag }

/** The options of the run; undefined for --help. @throws UsageError */
export const readCommandLine = (args: readonly string[]): Wish | undefined => {
  const { values } = optionsIn(args, options)
  if (values.help) return undefined
  const only = namesIn('only', values.only, targetNames)
  const path = values.case
  if (path !== undefined && !/^\d{1,9}(:\d{1,9})*$/.test(path))
    throw new UsageError(`--case must be numbers with colons, such as 3:0:1, got ${JSON.stringify(path)}`)
  if (path !== undefined && only.length !== 1)
    throw new UsageError('--case needs one target: add --only <target>')
  const isRandom = values.seed === 'random'
  return {
    seed: isRandom ? randomInt(2 ** 32) : wholeNumberOf('seed', values.seed, usualSeed, 0, 2 ** 32 - 1),
    seconds: wholeNumberOf('seconds', values.seconds, usualSeconds, 1, 1_000_000),
    ...{ only, path, json: values.json === true, report: values.report },
  }
}

/** What `parseArgs` finds. @throws UsageError */
export const optionsIn = <Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
) => {
  try {
    return parseArgs({ args: [...args], options })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** The value of an option. @throws UsageError */
export const wholeNumberOf = (
  ...[name, text, usual, least, most]: [string, string | undefined, number, number, number]
): number => {
  const value = text === undefined ? usual : /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new UsageError(`--${name} must be an integer from ${least} to ${most}, got ${JSON.stringify(text)}`)
}

/** Some of these names, in the order in which they are given, or all. @throws UsageError */
export const namesIn = <Name extends string>(
  ...[option, text, all]: [string, string | undefined, readonly Name[]]
): readonly Name[] =>
  text?.split(',').map(part => {
    const name = all.find(one => one === part.trim())
    if (name === undefined)
      throw new UsageError(`--${option} must be some of ${all.join(', ')}, got ${JSON.stringify(part)}`)
    return name
  }) ?? all

/** Reads the command line of this process, and exits as the command does; after a usage error with 2. */
export const runMain = async <Wish>(
  name: string,
  text: string,
  read: (args: readonly string[]) => Wish | undefined,
  run: (wish: Wish) => Promise<number>,
): Promise<void> => {
  try {
    const wish = read(process.argv.slice(2))
    if (wish) process.exitCode = await run(wish)
    else process.stdout.write(text)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${name}: ${error.message}; \`--help\` shows what is allowed\n`)
    process.exitCode = 2
  }
}
