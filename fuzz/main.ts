// `npm run fuzz`: attacks the product with generated cases and reports what broke. Runs the targets one after the other,
// each against its own system. Exit code: 0 nothing found, 1 faults found, 2 usage error.

import { readCommandLine, runMain, usage, type Wish } from './command-line.ts'
import { readMarkedPart } from './marked-part.ts'
import { type Ran, runTarget } from './run-target.ts'
import { jsonOf, partName, textOf, writeReport } from './summary.ts'
import { memoryLimitText } from './system/gateway-process.ts'
import { closeAll } from './system/system.ts'
import { targets } from './targets/all.ts'

const progressEveryMs = 10_000
const say = (text: string): void => void process.stderr.write(`${text}\n`)

const fuzz = async ({ seed, seconds, only, path, json, report }: Wish): Promise<number> => {
  // Checked first, because a run takes minutes.
  if (report !== undefined) await readMarkedPart(report, partName)
  const chosen = targets.filter(({ name }) => only.includes(name))
  say(`seed ${seed}; ${memoryLimitText}`)
  const shares = chosen.reduce((sum, { share }) => sum + share, 0)
  const ran: Ran[] = []
  let shownAt = performance.now()
  for (const target of chosen) {
    const plan = { seed, seconds: (seconds * target.share) / shares, ...(path !== undefined && { path }) }
    const done = await runTarget(target, plan, (cases, secondsLeft) => {
      if (performance.now() - shownAt < progressEveryMs) return
      shownAt = performance.now()
      say(`${target.name}: ${cases} cases, ${Math.ceil(secondsLeft)} s left`)
    })
    say(`${target.name}: ${done.cases} cases${done.found ? `, ${done.found.rule}` : ''}`)
    ran.push(done)
  }
  process.stdout.write(`${json ? jsonOf(seed, ran, memoryLimitText) : textOf(seed, ran)}\n`)
  if (report !== undefined) await writeReport(report, seed, ran, memoryLimitText)
  return ran.some(({ found }) => found) ? 1 : 0
}

// Child processes would outlive the fuzzer.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void closeAll().finally(() => process.exit(130)))

await runMain('fuzz', usage, readCommandLine, fuzz)
