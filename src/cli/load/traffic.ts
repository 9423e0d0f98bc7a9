// `abohawa traffic …`: files of traffic, one request a line.

import type { Command } from 'commander'
import type { AddCommand } from '../terminal.ts'
import { addFileCommands } from './traffic-files.ts'
import { addGenerateCommand } from './traffic-generate.ts'
import { addKeysCommand } from './traffic-keys.ts'
import { addStatsCommand } from './traffic-stats.ts'

export const addTrafficCommands = (program: Command, add: AddCommand): void => {
  const traffic = program
    .command('traffic')
    .summary('make and look at files of traffic, for replays')
    .description('Files of traffic: one request a line.')
  addFileCommands(traffic, add)
  addGenerateCommand(traffic, add)
  addKeysCommand(traffic, add)
  addStatsCommand(traffic, add)
}
