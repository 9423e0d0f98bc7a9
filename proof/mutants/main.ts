// `npm run mutants`: changes one place of the product at a time, and says which changes neither tests nor histories notice. Exit
// code: 0 all were noticed or are known to change nothing, 1 some survived, 2 usage error.

import { availableParallelism } from 'node:os'
import { namesIn, optionsIn, runMain, UsageError, wholeNumberOf } from '../../fuzz/command-line.ts'
import { drawMutants, type Mutant, type Room, roomNames } from './draw.ts'
import { equivalents } from './equivalents.ts'
import { type Durations, type Judgement, judgeMutant, openCopy, timeTests } from './judge.ts'

const usual = { count: 100, seed: 1, seeds: 4, lanes: Math.min(2, availableParallelism()) }

const usage = `Usage: npm run mutants -- [options]

Changes one place of the product at a time, such as < to <=, and runs the tests of its room against the changed copy. What
these do not notice is run through some histories of a fleet; with --both every mutant is. Needs redis-server and prlimit
on the path.

  --count <number>       mutants; default ${usual.count}
  --seed <number>        which ones; equal seeds draw equal mutants of equal sources; default ${usual.seed}
  --rooms <room,…>       ${roomNames.join(', ')}; all by default
  --only <number,…>      of these mutants only those with these numbers
  --histories <number>   seeds of histories for each that the tests do not notice, 0 for none; default ${usual.seeds}
  --both                 histories for each that the tests notice, too
  --lanes <number>       copies at once, 1 to 16; default ${usual.lanes}
  --list                 prints the mutants without running them
  --json                 the results as JSON on standard output
  --help                 this text

Exit code: 0 none survived but those known to change nothing, 1 some survived, 2 usage error.

Example:
  npm run mutants -- --count 60 --seed 7 --rooms cache,keys
`

type Options = {
  readonly count: number
  readonly seed: number
  readonly rooms: readonly Room[]
  readonly only: readonly number[] | undefined
  readonly histories: number
  readonly both: boolean
  readonly lanes: number
  readonly list: boolean
  readonly json: boolean
}

const [text, flag] = [{ type: 'string' }, { type: 'boolean' }] as const
const options = {
  ...{ count: text, seed: text, rooms: text, only: text, histories: text, lanes: text },
  ...{ both: flag, list: flag, json: flag, help: flag },
}

/** The options of the run; undefined for --help. @throws UsageError */
const readCommandLine = (args: readonly string[]): Options | undefined => {
  const { values } = optionsIn(args, options)
  if (values.help) return undefined
  const { both = false, list = false, json = false, only } = values
  const whole = (
    name: 'count' | 'seed' | 'histories' | 'lanes',
    byDefault: number,
    least: number,
    most: number,
  ) => wholeNumberOf(name, values[name], byDefault, least, most)
  if (only !== undefined && !/^\d{1,5}(,\d{1,5})*$/.test(only))
    throw new UsageError(`--only must be numbers with commas, such as 3,17, got ${JSON.stringify(only)}`)
  return {
    count: whole('count', usual.count, 1, 10_000),
    seed: whole('seed', usual.seed, 0, 2 ** 32 - 1),
    rooms: namesIn('rooms', values.rooms, roomNames),
    only: only?.split(',').map(Number),
    histories: whole('histories', usual.seeds, 0, 1_000),
    lanes: whole('lanes', usual.lanes, 1, 16),
    ...{ both, list, json },
  }
}

type Result = Omit<Mutant, 'source'> &
  Judgement & { /** Why it is the same program. */ readonly same?: string }

const root = new URL('../../', import.meta.url).pathname

/** Judges the mutants in as many copies as there are lanes, and adds each to the results. */
const judgeAll = async (
  mutants: readonly Mutant[],
  { lanes, ...wish }: Options,
  results: Result[],
): Promise<void> => {
  const histories = { seeds: wish.histories, isBoth: wish.both }
  const copies = Array.from({ length: lanes }, () => openCopy(root))
  process.once('exit', () => {
    for (const copy of copies) copy.close()
  })
  const rooms = [...new Set(mutants.map(({ room }) => room))]
  const durations = new Map<Room, Durations>()
  await Promise.all(
    copies.map(async copy => {
      for (let room = rooms.shift(); room; room = rooms.shift()) {
        const files = mutants.filter(mutant => mutant.room === room).map(({ file }) => file)
        const ofRoom = await timeTests(copy, root, room, [...new Set(files)])
        durations.set(room, ofRoom)
        process.stderr.write(`${ofRoom.size} tests of ${room}/ may judge its mutants\n`)
      }
    }),
  )
  const waiting = [...mutants]
  await Promise.all(
    copies.map(async copy => {
      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
        const usualMs = durations.get(mutant.room) ?? new Map()
        const judgement = await judgeMutant(copy, root, mutant, usualMs, histories)
        const { source: _, ...shown } = mutant
        const result: Result = { ...shown, ...judgement, ...sameAs(mutant) }
        results.push(result)
        process.stderr.write(`${results.length} of ${mutants.length}: ${lineOf(result)}\n`)
      }
    }),
  )
}

const sameAs = ({ file, before, after }: Mutant): { same?: string } => {
  const found = equivalents.find(one => one.file === file && one.before === before && one.after === after)
  return found ? { same: found.why } : {}
}

const isKilled = ({ tests, histories }: Judgement): boolean => tests === 'killed' || histories === 'killed'
const isSurvivor = (result: Result): boolean => !isKilled(result) && result.same === undefined

const lineOf = (result: Result): string => {
  const { number, file, line, operator, tests, histories, by, same } = result
  const ofTests = `tests: ${tests}${by ? ` (${by})` : ''}`
  const judged = same ? 'same program' : `${ofTests}${histories ? `, histories: ${histories}` : ''}`
  return `mutant ${number}, ${file}:${line}, ${operator}: ${judged}`
}

const tableOf = (results: readonly Result[]): string => {
  const rows = roomNames.flatMap(room => {
    const inRoom = results.filter(result => result.room === room)
    const of = inRoom.filter(({ same }) => same === undefined)
    if (of.length === 0) return []
    const count = (is: (result: Result) => boolean): number => of.filter(is).length
    const byTests = count(({ tests }) => tests === 'killed')
    const byHistories = count(({ histories }) => histories === 'killed')
    const byBoth = count(({ tests, histories }) => tests === 'killed' && histories === 'killed')
    const late = count(
      result => !isKilled(result) && [result.tests, result.histories].includes('does not end'),
    )
    const share = Math.floor((100 * count(isKilled)) / of.length)
    const counts = [byTests, byHistories, byBoth, late, count(isSurvivor) - late, inRoom.length - of.length]
    return `| \`${room}/\` | ${inRoom.length} | ${counts.join(' | ')} | ${share} % |`
  })
  return [
    '| room | mutants | killed by tests | by histories | by both | do not end | survived | same program | killed of the others |',
    '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...rows,
  ].join('\n')
}

const changeText = ({
  number,
  file,
  line,
  before,
  after,
}: Pick<Mutant, 'number' | 'file' | 'line' | 'before' | 'after'>) =>
  `${number}. ${file}:${line}\n   - ${before}\n   + ${after}\n`

const run = async (wish: Options): Promise<number> => {
  process.stderr.write(`draws ${wish.count} mutants that compile\n`)
  const all = drawMutants(root, wish.count, wish.seed, wish.rooms)
  const mutants = all.filter(({ number }) => wish.only?.includes(number) ?? true)
  if (wish.list) {
    process.stdout.write(mutants.map(changeText).join(''))
    return 0
  }
  const results: Result[] = []
  const show = (): void => {
    results.sort((a, b) => a.number - b.number)
    const shown = `${tableOf(results)}\n\n${results.filter(isSurvivor).map(changeText).join('')}`
    process.stdout.write(wish.json ? `${JSON.stringify(results)}\n` : shown)
  }
  // What an hour has judged is shown where the rest is given up.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      show()
      process.exit(130)
    })
  await judgeAll(mutants, wish, results)
  show()
  return results.some(isSurvivor) ? 1 : 0
}

await runMain('mutants', usage, readCommandLine, run)
