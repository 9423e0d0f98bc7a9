// `abohawa traffic …`: files of traffic, one request a line.

import type { AddTopCommand } from '../terminal.ts'
import { addFileCommands } from './traffic-files.ts'
import { addGenerateCommand } from './traffic-generate.ts'
import { addKeysCommand } from './traffic-keys.ts'
import { addStatsCommand } from './traffic-stats.ts'

export const addTrafficCommands: AddTopCommand = (program, add, summary) => {
  const traffic = program
    .command('traffic')
    .summary(summary)
    .description('Files of traffic: one request a line.')
  addFileCommands(traffic, add)
  addGenerateCommand(traffic, add)
  addKeysCommand(traffic, add)
  addStatsCommand(traffic, add)
}
