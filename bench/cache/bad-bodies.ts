// A provider with bad responses of seven kinds: none is cached, and requests meanwhile get the older weather at once.

import { hourMs, minuteMs } from '../../src/common/calendar.ts'
import { startOnOneClock } from '../../test/scenarios/one-clock.ts'
import { forAll, isoOf, metric, noBudget, pathOf, placesByCell, quiet } from '../../test/scenarios/set-up.ts'
import { until } from '../../test/support/until.ts'
import { count, median, ms, type Row } from '../row.ts'

const start = Date.parse('2026-11-21T06:00:00Z')
const faults = ['hang', 'cut-off', 'bad-gateway', 'empty', 'wrong-count', 'wrong-offset', 'all-null'] as const
const cells = 100

export const badBodies: Row = {
  id: 'bad-bodies',
  method:
    'For each fault 100 cells are filled, turn stale, and are requested one after the other while the provider is at ' +
    'fault; a model run came in between, so that anything taken from it would show. When all refreshes have failed, ' +
    'every body is compared with what was served before, byte for byte, on the same clock. A hanging answer is given up ' +
    'after provider.timeout, here 2 s.',
  run: async (scope, progress) => {
    const paths = placesByCell()
      .slice(0, cells)
      .map(({ cell }) => pathOf(cell))
    const { clock, provider, gateway, send } = await startOnOneClock(scope, {
      start,
      provider: ['--runs', 'ecmwf'],
      env: {
        ...noBudget,
        ABOHAWA_PROVIDER__TIMEOUT: '2s',
        ABOHAWA_TEST_PROVIDER__RETRIES: '0',
        // High enough to keep the breaker closed, so that real requests meet every fault.
        ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
      },
      connections: 8,
    })
    // Refresh-ahead may find a cell due before its request comes.
    const failures = async (): Promise<number> =>
      (await metric(gateway.opsUrl, 'abohawa_cache_refresh_failures_total{purpose="refresh"}')) +
      (await metric(gateway.opsUrl, 'abohawa_cache_refresh_failures_total{purpose="refresh_ahead"}'))
    const times: number[] = []
    const changed: Record<string, number> = {}
    const slowest: Record<string, number> = {}
    let notFresh = 0
    for (const [i, fault] of faults.entries()) {
      progress(fault)
      clock.set(start + i * 24 * hourMs)
      await provider.steer({ fault: 'none', now: isoOf(clock.now()) })
      await forAll(paths, 16, send)
      await quiet(provider, gateway.opsUrl)
      await forAll(paths, 16, async path => {
        if (!/hit; ttl=\d/.test((await send(path)).cache)) notFresh += 1
      })
      clock.advance(75 * minuteMs)
      await provider.steer({ fault, now: isoOf(clock.now()) })
      const failed = await failures()
      const before = new Map<string, string>()
      let worst = 0
      for (const path of paths) {
        const { status, ms: took, text, cache } = await send(path)
        if (status !== 200 || !/ttl=-/.test(cache)) notFresh += 1
        before.set(path, text)
        times.push(took)
        worst = Math.max(worst, took)
      }
      slowest[fault] = worst
      await until(
        `${fault}: all refreshes have failed`,
        async () => (await failures()) - failed >= cells,
        60_000,
      )
      let differ = 0
      for (const path of paths) {
        const { text, cache } = await send(path)
        if (text !== before.get(path) || !/ttl=-/.test(cache)) differ += 1
      }
      changed[fault] = differ
    }
    const differ = Object.values(changed).reduce((sum, n) => sum + n, 0)
    const worst = Math.max(...times)
    return {
      findings: [
        {
          what: `provider hangs, breaks off, sends HTML, nothing, a wrong count, a wrong offset, no values: bodies changed by it`,
          bar: 'none',
          measured: `${differ} of ${count(faults.length * cells)} bodies changed${notFresh ? `, ${notFresh} not in the state expected` : ''}`,
          met: differ === 0 && notFresh === 0,
          figures: { ...changed, notFresh },
        },
        {
          what: 'the same: the older weather is served meanwhile within',
          bar: '50 ms, the slowest',
          measured: `${ms(worst)} slowest, ${ms(median(times))} median of ${count(times.length)} (${Object.entries(
            slowest,
          )
            .map(([fault, took]) => `${fault} ${took.toFixed(0)}`)
            .join(', ')})`,
          met: worst <= 50,
          figures: { worst, median: median(times), ...slowest },
        },
      ],
    }
  },
}
