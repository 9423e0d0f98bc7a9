// Limits the memory of a gateway under attack with prlimit (util-linux), if installed, so that the machine survives.

import { spawnSync } from 'node:child_process'

const limitBytes = 1536 * 1024 * 1024

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

/** The command line that starts a command with a limit; empty where memory cannot be limited. */
export const underMemoryLimit: readonly string[] = hasPrlimit ? ['prlimit', `--data=${limitBytes}`] : []

/** The limit in words, for the summary. */
export const memoryLimitText = hasPrlimit
  ? `data of each gateway limited to ${limitBytes / 2 ** 20} MiB`
  : 'memory is not limited: prlimit is missing'
