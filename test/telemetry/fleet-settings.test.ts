// Without it gateways could run different settings without a warning.

import t from 'tap'
import { createFleetSettings } from '../../src/telemetry/fleet-settings.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { manualClock } from '../support/manual-clock.ts'

const setUp = () => {
  const clock = manualClock()
  const told: (number | 'agree')[] = []
  const log = createLog('info', {
    write: line => {
      const { variants, msg } = JSON.parse(line)
      told.push(/ differ$/.test(msg) ? variants : 'agree')
    },
  })
  const settings = createFleetSettings(clock, log)
  const after = (ms: number, variants: number) => {
    clock.advance(ms)
    settings.onHeartbeat(variants)
  }
  return { settings, told, after }
}

t.test('a change that reaches all instances within two minutes is not told', async t => {
  const { settings, told, after } = setUp()
  after(0, 1)
  after(5_000, 2)
  after(119_000, 3)
  after(5_000, 1)
  after(119_000, 2)
  t.strictSame(told, [])
  t.equal(settings.variants(), 1)
})

t.test('a difference that lasts is told once, and its end, also where the clock is set back', async t => {
  const { settings, told, after } = setUp()
  after(0, 2)
  after(-6 * 3_600_000, 2)
  after(120_000, 2)
  t.strictSame([told, settings.variants()], [[2], 2])
  after(5_000, 3)
  t.strictSame([told, settings.variants()], [[2], 3])
  after(5_000, 1)
  t.strictSame([told, settings.variants()], [[2, 'agree'], 1])
  after(5_000, 2)
  t.equal(settings.variants(), 1, 'and the next one has its two minutes')
})
