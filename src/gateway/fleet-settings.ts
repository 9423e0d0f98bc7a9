// Notices when the instances of a fleet run different settings for longer than a change takes to reach all of them. The
// heartbeats count the different settings; this file only measures how long that lasts.

import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'

export type FleetSettingsObserver = {
  /** Called once, until they agree again. */
  onDiffer(variants: number): void
  onAgree(): void
}

// Each reads its own file, and a restart of many instances takes a while.
const toleratedMs = 2 * minuteMs

export type FleetSettings = {
  /** A heartbeat counted so many different settings among the instances alive. */
  onHeartbeat(variants: number): void
  /** How many there are, once that has lasted; 1 until then. */
  variants(): number
}

export const createFleetSettings = (clock: Clock, observer: FleetSettingsObserver): FleetSettings => {
  let differSince: number | undefined
  let reported = 1
  return {
    onHeartbeat: variants => {
      if (variants <= 1) {
        differSince = undefined
        if (reported > 1) observer.onAgree()
        reported = 1
        return
      }
      const now = clock.now()
      differSince = Math.min(differSince ?? now, now)
      if (now - differSince < toleratedMs) return
      if (reported === 1) observer.onDiffer(variants)
      reported = variants
    },
    variants: () => reported,
  }
}
