// The machine and the version of the program that a run was made with, for its result.

import { execFile } from 'node:child_process'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { version } from '../../version.ts'
import type { ReplayResult } from '../report/result.ts'

export const machineOf = async (): Promise<ReplayResult['machine']> => ({
  node: process.version,
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  memoryBytes: totalmem(),
  version,
  commit: await commitOf(),
})

/** Null where the program is not in a working copy, or git is not installed. */
const commitOf = async (): Promise<string | null> => {
  try {
    const { stdout } = await promisify(execFile)('git', ['rev-parse', '--short=12', 'HEAD'], {
      cwd: import.meta.dirname,
      timeout: 2_000,
    })
    return stdout.trim() || null
  } catch {
    return null
  }
}
