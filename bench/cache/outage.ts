// Eight hours without the provider: what places that were seen before are answered, how often the provider is tried, and
// how soon it is in use again.

import { createCalendar, hourMs, quarterHourMs } from '../../src/calendar.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { openDesk, type Row, until } from './stage.ts'

const start = Date.parse('2026-11-21T11:07:00Z')
const cells = 300
const rest = { first: 200, most: 1_000, after: 3 }
const moods = ['reset', 'bad-gateway', 'hang']

export const outage: Row = {
  name: 'outage',
  what: 'provider down for 8 h, 300 cells seen before',
  bar: 'right quarter-hour, hour and day all along; ≤ 1 probe per rest; in use again within one rest',
  run: async scope => {
    const provider = await startProvider(scope)
    const desk = await openDesk(scope, provider, start, {
      ABOHAWA_PROVIDER__TIMEOUT: '300ms',
      ABOHAWA_PROVIDER__RETRY_DELAY: '1ms',
      ABOHAWA_PROVIDER__BREAKER__AFTER: String(rest.after),
      ABOHAWA_PROVIDER__BREAKER__REST_FOR: `${rest.first}ms`,
      ABOHAWA_PROVIDER__BREAKER__REST_FOR_AT_MOST: `${rest.most}ms`,
    })
    const calendar = createCalendar('Asia/Dhaka')
    const points = desk.catalogue
      .all()
      .filter((_, i) => i % 4 === 0)
      .map(({ latitude, longitude }) => desk.supply.grid.cellOf(latitude, longitude))
    const seen = [...new Map(points.map(cell => [cell.id, cell])).values()].slice(0, cells)
    await Promise.all(seen.map(cell => desk.answers.weather(cell)))

    const { calls } = await provider.state()
    const begun = performance.now()
    let answers = 0
    let wrong = 0
    for (let step = 1; step <= 32; step++) {
      const now = start + step * quarterHourMs
      await provider.steer({ mood: moods[Math.floor((step - 1) / 11)] ?? 'reset' })
      await desk.moveTo(now)
      for (const weather of await Promise.all(seen.map(cell => desk.answers.weather(cell)))) {
        answers += 1
        const isRight =
          weather.current.time === calendar.localMinute(Math.floor(now / quarterHourMs) * quarterHourMs) &&
          weather.hourly.time[0] === `${calendar.localMinute(now).slice(0, 13)}:00` &&
          weather.daily.time[0] === calendar.dayOf(now)
        if (!isRight) wrong += 1
      }
      // Time passes on the machine too, on which the rests are measured.
      const stepEnds = begun + step * 250
      await until(async () => performance.now() >= stepEnds, 'the step is over')
      scope.progress(`quarter-hour ${step} of 32`)
    }
    const elapsed = performance.now() - begun
    const probes = (await provider.state()).calls - calls
    // The first failures open the circuit; then rests double to the longest, each up to a quarter shorter by chance.
    const windows = 3 + Math.ceil(elapsed / (rest.most * 0.75))
    await provider.steer({ mood: 'ok' })
    const backAt = performance.now()
    await desk.moveTo(start + 8.5 * hourMs)
    await until(async () => {
      const fresh = await Promise.all(seen.map(cell => desk.answers.weather(cell)))
      // A cell that failed rests by the clock of the gateway.
      desk.clock.advance(1_000)
      await provider.steer({ now: new Date(desk.clock.now()).toISOString() })
      return fresh.every(({ outcome }) => outcome === 'hit')
    }, 'all cells are fresh again')
    const recovery = performance.now() - backAt
    return {
      measured:
        `${answers - wrong} of ${answers} right; ${probes} requests in ${(elapsed / 1000).toFixed(1)} s of machine time ` +
        `(${rest.after} to open, then at most ${windows} rests); all fresh ${(recovery / 1000).toFixed(1)} s after its return`,
      met: wrong === 0 && probes <= rest.after + windows && recovery <= rest.most + 1_500,
      notes: [
        `The 8 hours pass on the gateway's clock, the rests on the machine's: they are set to ${rest.first} ms at first and ${rest.most} ms at most here, ` +
          `where the defaults are 5 s and 1 min. The recovery includes fetching all ${seen.length} cells.`,
      ],
    }
  },
}
