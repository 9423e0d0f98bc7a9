// The default protocol of a gateway, for tests of parts that depend on the type in protocol.ts alone.

import { createCalendar, hourMs } from '../../src/calendar.ts'
import { createOpenMeteo } from '../../src/provider/open-meteo/protocol.ts'
import { horizonFor } from '../../src/weather/horizon.ts'

export const openMeteo = createOpenMeteo({
  horizon: horizonFor(13 * hourMs, 48),
  calendar: createCalendar('Asia/Dhaka'),
})
