// All targets, in the order in which they run.

import type { Target } from '../target.ts'
import { configuration } from './configuration.ts'
import { parameters } from './parameters.ts'
import { provider } from './provider.ts'
import { sockets } from './sockets.ts'
import { streams } from './streams.ts'
import { traffic } from './traffic.ts'

export const targets: readonly Target[] = [sockets, streams, parameters, provider, configuration, traffic]
