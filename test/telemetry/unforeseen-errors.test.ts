// Without it the arguments of a failed command could reach the log.

import { pino } from 'pino'
import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createObservers } from '../../src/telemetry/observers.ts'
import { openOutages } from '../../src/telemetry/outages.ts'

const lineOf = (error: unknown): string => {
  const lines: string[] = []
  const log = pino({ base: null }, { write: text => void lines.push(text) })
  const metrics = createMetrics({ clock: systemClock, store: 'embedded' })
  const outages = openOutages(log, systemClock, { staleReads: () => 0, room: () => 'any' })
  createObservers(metrics, log, outages, systemClock).api.failed(error, 'id-1')
  return lines.join('')
}

t.test('the arguments of a command and the input of a parser stay out of the log', async t => {
  const url = 'redis://me:QX/ZW@redis'
  const reply = Object.assign(new Error(`no connection to ${url}`), {
    command: { name: 'auth', args: ['me', 'QX/ZW'] },
    input: url,
    cause: new Error(url),
  })
  for (const thrown of [reply, url, { url }]) {
    const line = lineOf(thrown)
    t.match(JSON.parse(line), { requestId: 'id-1', msg: 'failed', err: { message: String } })
    t.notMatch(line, /QX|ZW/)
  }
  t.hasStrict(JSON.parse(lineOf(new TypeError('x'))).err, { type: 'TypeError', message: 'x' })
  t.match(JSON.parse(lineOf(reply)).err, { type: 'Error', stack: /unforeseen-errors\.test\.ts/ })
})
