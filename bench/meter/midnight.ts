// Local midnight under load, over processes with clocks a minute and a half apart: every response belongs to one day, and
// both days are counted exactly.

import { measureMidnight } from '../../test/scenarios/midnight.ts'
import { count, type Row } from '../row.ts'

export const midnightRow: Row = {
  id: 'midnight',
  method:
    'Processes of the real gateway whose clocks are 90 s late, right, right and 90 s early, on a Redis whose clock stands ' +
    'shortly before local midnight: 64 callers send requests for three seconds before and three after.',
  run: async scope => {
    const found = await measureMidnight(scope, {
      skews: [-90_000, 0, 0, 90_000],
      connections: 64,
      pauseMs: 0,
      beforeMs: 3_000,
      afterMs: 3_000,
      limit: 1_000_000,
    })
    const days = found.byDay.map(
      ({ admitted, counted }) => `${count(admitted)} admitted and ${count(counted)} counted`,
    )
    const isRight = found.byDay.every(day => day.admitted > 0 && day.admitted === day.counted)
    return {
      findings: [
        {
          what: 'midnight under load, clocks ±90 s off: answers of neither day, counts of both',
          bar: '0, exact',
          measured: `${found.strays}; ${days.join(', then ')}; days overlap by ${found.overlapMs.toFixed(0)} ms`,
          met: found.strays === 0 && isRight,
          figures: { strays: found.strays, overlapMs: found.overlapMs },
        },
      ],
    }
  },
}
