// The default protocol of a gateway, and the options of a call with it, for tests of parts that depend on the type in
// protocol.ts alone.

import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import { createOpenMeteo } from '../../src/provider/open-meteo/protocol.ts'
import { horizonFor } from '../../src/weather/horizon.ts'
import { patienceMs } from './until.ts'

export const openMeteo = createOpenMeteo({
  horizon: horizonFor(13 * hourMs, 48),
  calendar: createCalendar('Asia/Dhaka'),
})

/** Options of a provider call, with timeouts that no honest server on loopback exceeds, even on a busy machine. */
export const callOptions = (baseUrl: string) => ({
  baseUrl,
  apiKey: null,
  ...{ connectTimeoutMs: patienceMs, timeoutMs: patienceMs, bodyTimeoutMs: patienceMs },
  totalTimeoutMs: patienceMs,
  maxConcurrent: 1,
})
