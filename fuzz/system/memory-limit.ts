// What keeps a gateway that is made to eat memory from taking the machine: prlimit of util-linux, where there is one.

import { spawnSync } from 'node:child_process'

const limitBytes = 1536 * 1024 * 1024

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

/** What a command is started through; nothing where memory can't be limited. */
export const underMemoryLimit: readonly string[] = hasPrlimit ? ['prlimit', `--data=${limitBytes}`] : []

/** In words, for the summary. */
export const memoryLimitText = hasPrlimit
  ? `data of each gateway limited to ${limitBytes / 2 ** 20} MiB`
  : 'memory is not limited: prlimit is missing'
