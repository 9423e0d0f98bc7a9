// Parses the command line of the proof. An invalid one is a usage error: one sentence and exit code 2.

import { availableParallelism } from 'node:os'
import { optionsIn, UsageError, wholeNumberOf } from '../fuzz/command-line.ts'

export type Options = {
  /** For how long, or for how many seeds. */
  readonly until: { readonly ms: number } | { readonly seeds: number }
  readonly first: number
  readonly lanes: number
  readonly sabotage: boolean
  /** Of planted faults: what is in their name or file. */
  readonly only: string
  readonly verbose: boolean
  /** Ends with the first broken promise. */
  readonly failFast: boolean
  readonly json: boolean
  /** The page whose figures are to be rewritten. */
  readonly report: string | undefined
  /** The folder of histories that broke a promise. */
  readonly keep: string
}

const usualFirst = 1
// A history waits for half of its time.
const usualLanes = 2 * availableParallelism()
const usualHours = 1
const usualSabotageSeeds = 36
const usualKeep = 'node_modules/.cache/proof'
const mostSeed = 2 ** 32 - 1

export const usage = `Usage: npm run proof -- [options]

Takes seeded schedules of faults with a fleet of three gateways, a real Redis and a simulated provider on a clock that is
moved, records every request and answer, and has a checker that knows only the contract judge the history. Needs
redis-server on the path. docs/reliability.md says what is promised.

  --hours <number>       for how long; default ${usualHours}
  --minutes <number>     the same in minutes
  --seeds <number>       for so many seeds instead
  --first <number>       the first seed; the others follow it; default ${usualFirst}
  --seed <number>        this seed alone, shown as a history with --verbose
  --verbose              prints the history of --seed
  --fail-fast            ends with the first broken promise, and looks for no smaller schedule that breaks it
  --lanes <number>       processes at once, 1 to 64, each with a Redis of its own; default ${usualLanes},
                         two for each core
  --sabotage             plants faults in the product, one at a time, and says in how many seeds each is found;
                         --seeds are those of each fault, at most: ${usualSabotageSeeds} by default, and one that
                         finds it is enough
  --only <text>          with --sabotage: the faults that have this in their name or file
  --keep <folder>        where histories that broke a promise are kept; default ${usualKeep}
  --json                 the results as JSON on standard output
  --report <file>        rewrites the figures in this page
  --help                 this text

Exit code: 0 every promise held, 1 one was broken (with --sabotage: a fault was not found), 2 usage error.

Example:
  npm run proof -- --minutes 3 --first 1000
`

const [text, flag] = [{ type: 'string' }, { type: 'boolean' }] as const
const options = {
  ...{
    hours: text,
    minutes: text,
    seeds: text,
    first: text,
    seed: text,
    lanes: text,
    keep: text,
    only: text,
    report: text,
  },
  ...{ verbose: flag, 'fail-fast': flag, sabotage: flag, json: flag, help: flag },
}

/** The options of the run; undefined for --help. @throws UsageError */
export const readCommandLine = (args: readonly string[]): Options | undefined => {
  const { values } = optionsIn(args, options)
  if (values.help) return undefined
  const {
    hours,
    minutes,
    verbose = false,
    'fail-fast': failFast = false,
    sabotage = false,
    json = false,
    report,
    only = '',
    keep = usualKeep,
  } = values
  const lengths = (['hours', 'minutes', 'seeds', 'seed'] as const).filter(name => values[name] !== undefined)
  if (lengths.length > 1) throw new UsageError(`--${lengths.join(" can't be combined with --")}`)
  if (verbose && values.seed === undefined) throw new UsageError('--verbose needs --seed <number>')
  if (sabotage && (hours ?? minutes) !== undefined)
    throw new UsageError("--sabotage can't be combined with --hours or --minutes; give --seeds <number>")
  if (sabotage && failFast)
    throw new UsageError(
      "--fail-fast can't be combined with --sabotage, which ends each fault with the seed that finds it",
    )
  if (only !== '' && !sabotage) throw new UsageError('--only needs --sabotage')
  if (only !== '' && report !== undefined)
    throw new UsageError("--only can't be combined with --report: the page is about all faults")
  const whole = (name: keyof typeof values, usual: number, least = 1, most = 1_000_000): number =>
    wholeNumberOf(name, values[name] as string | undefined, usual, least, most)
  const isOne = values.seed !== undefined
  const untilOf = (): Options['until'] => {
    if (isOne) return { seeds: 1 }
    if (values.seeds !== undefined || sabotage) return { seeds: whole('seeds', usualSabotageSeeds) }
    const usualMs = whole('hours', usualHours) * 3_600_000
    return { ms: minutes === undefined ? usualMs : whole('minutes', 1) * 60_000 }
  }
  return {
    until: untilOf(),
    first: whole(isOne ? 'seed' : 'first', usualFirst, 0, mostSeed),
    lanes: whole('lanes', isOne ? 1 : usualLanes, 1, 64),
    ...{ failFast, sabotage, only, verbose, json, report, keep },
  }
}
