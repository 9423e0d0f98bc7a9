// What a timeline takes, in memory and in the shared tier.

import type { Row } from './stage.ts'
import { measureTimelineForm } from './timeline-form.ts'

export const form: Row = {
  name: 'form',
  what: 'a timeline of 4,210 values in memory and in the shared tier',
  bar: 'measured',
  run: async () => {
    const { bytesInMemory, bytesShared, encodeUs, decodeUs, timelines } = await measureTimelineForm()
    return {
      measured: `${bytesInMemory.toLocaleString('en')} and ${bytesShared.toLocaleString('en')} bytes; ${encodeUs.toFixed(0)} µs to encode, ${decodeUs.toFixed(0)} µs to decode`,
      met: null,
      notes: [
        `Medians over ${timelines} timelines of simulated weather; the horizon is that of 24 hours of use.`,
      ],
    }
  },
}
