// When the provider's model runs come, as its largest models have it: the interval between two, and how long after its begin a
// run is available. A gateway reads when they came; the simulator and tools that send nothing go by this.

import { hourMs } from '../../calendar.ts'

export const runEveryMs = 6 * hourMs
export const runDelayMs = 6.5 * hourMs
