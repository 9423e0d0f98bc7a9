// `abohawa traffic import`, `generate` and `stats`: files of traffic, one request a line.

import { choiceOption, numberIn } from 'abohawa/command-line/quantities.ts'
import { type AddCommand, type AddTopCommand, counted } from 'abohawa/command-line/terminal.ts'
import type { Command } from 'commander'
import { createTrafficStats, type Subject } from '../traffic/stats/traffic-stats.ts'
import { addGenerateCommand } from './traffic-generate.ts'
import { addImportCommand } from './traffic-import.ts'
import { addReadOptions, configuredCellOf } from './traffic-options.ts'
import { type ReadOptions, readFiles } from './traffic-reading.ts'
import { jsonOfStats, textOfStats } from './traffic-stats-text.ts'

type Options = ReadOptions & { by: Subject; top: number }

const addStatsCommand = (traffic: Command, add: AddCommand): Command =>
  add<Options>(traffic, 'stats', {
    summary: 'show statistics of traffic files: rate, places, key skew, reuse, miss ratio',
    example: 'traffic stats samples/weekday.ndjson.gz',
    setUp: command =>
      void addReadOptions(command)
        .addOption(
          choiceOption('--by <object>', 'object of reuse and of the miss-ratio curve', [
            'cell',
            'place',
            'path',
            'key',
          ]),
        )
        .option('--top <number>', 'number of most popular objects to list', numberIn(1, 10_000), 10)
        .option('--strict', 'exit with code 1 at the first faulty line'),
    run: async (terminal, { by, top, ...options }, ...files) => {
      const counters = createTrafficStats(by, top, await configuredCellOf(terminal))
      const reading = await readFiles(terminal, files, options)
      for await (const _ of counters.pass(reading.batches()));
      const summary = reading.end()
      const stats = counters.stats()
      terminal.show(jsonOfStats(stats, summary), textOfStats(stats, summary, terminal.columns ?? 100))
      if (!reading.isInterrupted()) return 0
      terminal.remark(`Interrupted: the figures count only the first ${counted(stats.requests)} requests.`)
      return 1
    },
  })

export const addCommand: AddTopCommand = (program, add, summary) => {
  const traffic = program
    .command('traffic')
    .summary(summary)
    .description('Files of traffic: one request a line.')
  addImportCommand(traffic, add)
  addGenerateCommand(traffic, add)
  addStatsCommand(traffic, add)
}
