// The cost of a timeline, as a row of the table.

import { count, type Row } from '../row.ts'
import { measureTimelineForm } from './timeline-form.ts'

export const form: Row = {
  id: 'form',
  method: 'Medians over 200 simulated timelines spread over the country, 15 rounds, in this process alone.',
  run: async () => {
    const { bytesInMemory, bytesShared, encodeUs, decodeUs } = await measureTimelineForm()
    return {
      findings: [
        {
          what: 'form of a timeline',
          bar: '—',
          measured:
            `${count(bytesInMemory)} bytes in memory, ${count(bytesShared)} in the shared tier; ` +
            `${encodeUs.toFixed(0)} µs to encode, ${decodeUs.toFixed(0)} µs to decode`,
          met: null,
          figures: { bytesInMemory, bytesShared, encodeUs, decodeUs },
        },
      ],
    }
  },
}
