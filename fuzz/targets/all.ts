// All targets, in the order in which they run.

import type { Target } from '../target.ts'
import { configuration } from './configuration.ts'
import { entries } from './entries.ts'
import { operators } from './operators.ts'
import { parameters } from './parameters.ts'
import { pipelines } from './pipelines.ts'
import { provider } from './provider.ts'
import { quotas, quotasOfCluster, quotasOfSentinel } from './quotas.ts'
import { readers } from './readers.ts'
import { sockets } from './sockets.ts'
import { streams } from './streams.ts'
import { traffic } from './traffic.ts'

export const targets: readonly Target[] = [
  sockets,
  streams,
  pipelines,
  operators,
  parameters,
  provider,
  entries,
  quotas,
  quotasOfSentinel,
  quotasOfCluster,
  configuration,
  traffic,
  readers,
]
