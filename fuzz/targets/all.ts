// All targets, in the order in which they run.

import type { Target } from '../target.ts'
import { entries } from './entries.ts'
import { parameters } from './parameters.ts'
import { pipelines } from './pipelines.ts'
import { provider } from './provider.ts'
import { quotas } from './quotas.ts'
import { sockets } from './sockets.ts'
import { streams } from './streams.ts'

export const targets: readonly Target[] = [sockets, pipelines, parameters, provider, entries, quotas, streams]
