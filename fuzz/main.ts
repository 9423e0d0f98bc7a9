// `npm run fuzz`: attacks the product with generated cases and reports what broke. Runs the targets one after the other,
// each against its own system. Exit code: 0 nothing found, 1 faults found, 2 usage error.

import { readCommandLine, UsageError, usage, type Wish } from './command-line.ts'
import { createProgress } from './progress.ts'
import { checkReport, writeReport } from './report.ts'
import { type Ran, runTarget } from './run-target.ts'
import { asJson, faultsText, notesText, tableOf } from './summary.ts'
import { memoryLimitText } from './system/memory-limit.ts'
import { closeAll } from './system/system.ts'
import { targets } from './targets/all.ts'

const fuzz = async ({ seed, seconds, only, cases, json, report }: Wish): Promise<number> => {
  // Checked first, because a run takes minutes.
  if (report !== undefined) await checkReport(report, only)
  const progress = createProgress()
  const chosen = targets.filter(({ name }) => only.includes(name))
  progress.say(`seed ${seed}; ${memoryLimitText}`)
  const shares = chosen.reduce((sum, { share }) => sum + share, 0)
  const ran: Ran[] = []
  for (const target of chosen) {
    const started = performance.now()
    const plan = { seed, seconds: (seconds * target.share) / shares, ...(cases ? { cases } : {}) }
    const done = await runTarget(target, plan, (count, left, faults) =>
      progress.show(target.name, count, (performance.now() - started) / 1000, left, faults),
    )
    progress.say(`${target.name}: ${done.cases} cases, ${done.faults.length} faults`)
    ran.push(done)
  }
  process.stdout.write(
    json
      ? `${asJson(seed, ran, [memoryLimitText])}\n`
      : `${tableOf(ran)}\n\n${notesText(ran)}${faultsText(ran)}`,
  )
  if (report !== undefined) await writeReport(report, seed, ran)
  return ran.some(({ faults }) => faults.length > 0) ? 1 : 0
}

// Child processes would outlive the fuzzer.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void closeAll().finally(() => process.exit(130)))

try {
  const wish = readCommandLine(process.argv.slice(2))
  if (wish) process.exitCode = await fuzz(wish)
  else process.stdout.write(usage)
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`fuzz: ${error.message}; \`--help\` shows what is allowed\n`)
  process.exitCode = 2
}
