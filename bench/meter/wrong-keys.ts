// A flood of wrong keys: its cost for Redis, and whether memory stays level.

import { measureFlood } from '../../test/scenarios/wrong-keys.ts'
import { count, type Row } from '../row.ts'

export const wrongKeys: Row = {
  id: 'wrong-keys',
  method:
    'One process, 64 connections: 500,000 requests with keys whose checksum is wrong, then 500,000 with well-formed keys ' +
    'that were never issued, all different; each connection ends behind a hundred. Commands by the statistics of Redis, those of the polls of an idle gateway among them.',
  run: async (scope, progress) => {
    const found = await measureFlood(scope, 1_000_000, progress)
    // The sixth tenth is the first with well-formed keys, which the process remembers up to a bound.
    const sixth = found.residentMiB[5] ?? 0
    const last = found.residentMiB.at(-1) ?? 0
    return {
      findings: [
        {
          what: '1,000,000 requests with wrong keys: refused with 401',
          bar: 'all',
          measured: count(found.refused),
          met: found.refused === found.sent,
          figures: { refused: found.refused },
        },
        {
          what: 'the same: Redis commands for the 500,000 malformed ones',
          bar: '0 more than an idle gateway sends',
          measured: `${count(found.commandsForMistyped)}; ${count(found.commandsForUnknown)} for as many well-formed ones`,
          met: found.commandsForMistyped < found.sent / 1_000,
          figures: { mistyped: found.commandsForMistyped, unknown: found.commandsForUnknown },
        },
        {
          what: 'the same: resident memory',
          bar: 'level: ≤ 10 % over the last four tenths',
          measured: `${found.residentMiB.map(mib => mib.toFixed(0)).join(', ')} MiB after each tenth`,
          met: last < sixth * 1.1,
          figures: { residentMiB: found.residentMiB },
        },
      ],
    }
  },
}
