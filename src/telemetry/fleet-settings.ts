// Logs when the gateways of a fleet run different settings for longer than a change takes to reach all of them, and when they agree again.

import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Log } from './log.ts'

// Each reads its own file, and a restart of many instances takes a while.
const toleratedMs = 2 * minuteMs

export type FleetSettings = ReturnType<typeof createFleetSettings>

export const createFleetSettings = (clock: Clock, log: Pick<Log, 'info' | 'warn'>) => {
  let differSince: number | undefined
  let reported = 1
  return {
    /** A heartbeat counted so many different settings among the instances alive. */
    onHeartbeat: (variants: number): void => {
      if (variants <= 1) {
        differSince = undefined
        if (reported > 1) log.info('fleet settings agree again')
        reported = 1
        return
      }
      const now = clock.now()
      differSince = Math.min(differSince ?? now, now)
      if (now - differSince < toleratedMs) return
      if (reported === 1)
        log.warn(
          {
            variants,
            next: 'abohawa status says which instances differ; docs/runbook.md#abohawaconfigdiffers',
          },
          'fleet settings differ',
        )
      reported = variants
    },
    /** How many there are, once that has lasted; 1 until then. */
    variants: (): number => reported,
  }
}
