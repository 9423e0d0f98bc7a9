// Limits the memory of a gateway under attack, so that it does not take the machine: prlimit of util-linux, if installed.

import { spawnSync } from 'node:child_process'

const limitBytes = 1536 * 1024 * 1024

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

/** What a command is started through; nothing where memory can't be limited. */
export const underMemoryLimit: readonly string[] = hasPrlimit ? ['prlimit', `--data=${limitBytes}`] : []

/** In words, for the summary. */
export const memoryLimitText = hasPrlimit
  ? `data of each gateway limited to ${limitBytes / 2 ** 20} MiB`
  : 'memory is not limited: prlimit is missing'
