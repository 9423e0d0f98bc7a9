// The machine and the version of the program that a run was made with, for its result.

import { availableParallelism, cpus, totalmem } from 'node:os'
import { version } from '../../common/version.ts'
import type { ReplayResult } from '../report/result.ts'

export const machineOf = (): ReplayResult['machine'] => ({
  node: process.version,
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  memoryBytes: totalmem(),
  version,
})
