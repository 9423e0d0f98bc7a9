// `abohawa traffic …`: files of traffic, one request a line.

import type { AddTopCommand } from '../terminal.ts'
import { addGenerateCommand } from './traffic-generate.ts'
import { addImportCommand } from './traffic-import.ts'
import { addStatsCommand } from './traffic-stats.ts'

export const addTrafficCommands: AddTopCommand = (program, add, summary) => {
  const traffic = program
    .command('traffic')
    .summary(summary)
    .description('Files of traffic: one request a line.')
  addImportCommand(traffic, add)
  addGenerateCommand(traffic, add)
  addStatsCommand(traffic, add)
}
