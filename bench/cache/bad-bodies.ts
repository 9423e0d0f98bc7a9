// A provider that answers nonsense, or late: what is stored of it, and how soon consumers get what was there before.

import { hourMs } from '../../src/calendar.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { startGateway } from '../../test/support/start-gateway.ts'
import { median, type Row } from './stage.ts'

const start = Date.parse('2026-11-21T06:05:00Z')
const moods = ['hang', 'cut-off', 'bad-gateway', 'empty', 'wrong-count', 'wrong-offset', 'all-null']
const requests = 100

export const badBodies: Row = {
  name: 'bad-bodies',
  what: 'provider slow, cut-off, HTML, empty 200, wrong count, wrong offset, all nulls',
  bar: 'no wrong body stored or served; stale served within 50 ms',
  run: async scope => {
    const provider = await startProvider(scope)
    const slowest: number[] = []
    const all: number[] = []
    let wrong = 0
    for (const mood of moods) {
      scope.progress(mood)
      const clock = manualClock(start)
      await provider.steer({ mood: 'ok', now: new Date(start).toISOString() })
      const gateway = await startGateway(scope as never, {
        providerUrl: provider.url,
        clock,
        env: { ABOHAWA_CACHE__RETRY_AFTER: '10ms', ABOHAWA_PROVIDER__BREAKER__AFTER: '100' },
      })
      const path = '/weather/coords/24/90'
      const later = start + 2 * hourMs
      await gateway.get(path)
      // What the answer is two hours later from the timeline of now, before anything goes wrong.
      clock.set(later)
      await provider.steer({ hold: true })
      const expected = (await gateway.get(path)).text
      await provider.steer({ hold: false, mood, now: new Date(later).toISOString() })
      // A load that was held back may have landed before the mood came: begin from a known state again.
      clock.set(later + 3 * hourMs)
      await provider.steer({ mood, now: new Date(later + 3 * hourMs).toISOString() })
      const took: number[] = []
      let body = ''
      for (let i = 0; i < requests; i++) {
        const began = performance.now()
        const answer = await gateway.get(path)
        took.push(performance.now() - began)
        body ||= answer.text
        // Past each rest, so that the provider is asked again and again.
        clock.advance(50)
        if (answer.status !== 200 || answer.text !== body) wrong += 1
      }
      if (expected === '' || body === '') wrong += 1
      slowest.push(Math.max(...took))
      all.push(...took)
      const { status } = await gateway.get('/weather/coords/21/92')
      if (status === 200 && mood !== 'ok') wrong += 1
      await gateway.close()
    }
    return {
      measured: `${wrong} wrong of ${moods.length * requests}; stale in ${median(all).toFixed(1)} ms median, ${Math.max(...slowest).toFixed(0)} ms slowest`,
      met: wrong === 0 && Math.max(...slowest) <= 50,
      notes: [
        `${requests} requests in each of ${moods.length} moods, with a load that runs into the mood behind most of them; a cold cell beside them gets an error and no nonsense.`,
      ],
    }
  },
}
