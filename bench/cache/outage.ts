// Eight hours without the provider, failing in three ways in turn: all requests get weather for the right quarter-hour, hour
// and day, the provider is hardly called, and its recovery is noticed soon.

import { breaker, measureProviderOutage } from '../../test/scenarios/provider-outage.ts'
import { count, ms, type Row } from '../row.ts'

export const outage: Row = {
  id: 'outage',
  method:
    `One gateway with ${breaker.halfOpenAfterMs} ms as the first wait of the open circuit and ${breaker.halfOpenAfterAtMostMs / 1000} s as ` +
    'the longest, so that a measurement of seconds sees many probes. The clock of the weather is moved through 8 hours in ' +
    'steps of 15 minutes over a midnight in Dhaka; the waits pass in real time, and the bar is computed from the ' +
    'shortest waits that jitter allows in the time that really passed.',
  run: async (scope, progress) => {
    const size = { cells: 300, hours: 8, stepMinutes: 15, tickMs: 500 }
    const found = await measureProviderOutage(scope, size, progress)
    return {
      findings: [
        {
          what: `provider down for ${size.hours} h, ${size.cells} cells: answers`,
          bar: 'all 200, right quarter-hour, hour and day',
          measured: `${count(found.requests)} requests: ${found.failed} failed, ${found.wrong} with a wrong time; slowest ${ms(found.slowestMs)}`,
          met: found.failed === 0 && found.wrong === 0,
          figures: found,
        },
        {
          what: 'the same: requests to the provider meanwhile',
          bar: `≤ ${found.allowed}: one per probe and process`,
          measured: `${found.calls} in ${(found.elapsedMs / 1000).toFixed(0)} s of real time`,
          met: found.calls <= found.allowed,
          figures: { calls: found.calls, allowed: found.allowed },
        },
        {
          what: 'the same: weather is fresh again after the provider is back',
          bar: `≤ one longest wait (${breaker.halfOpenAfterAtMostMs} ms)`,
          measured: `first cell ${ms(found.firstMs)}, all ${size.cells} cells ${ms(found.allMs)}`,
          met: found.firstMs <= breaker.halfOpenAfterAtMostMs + 100 && found.notBack === 0,
          figures: { firstMs: found.firstMs, allMs: found.allMs, notBack: found.notBack },
        },
      ],
    }
  },
}
