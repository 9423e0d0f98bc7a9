// The protocol that a gateway speaks by default, for tests of the parts that know its type alone.

import { createCalendar, hourMs } from '../../src/calendar.ts'
import { createOpenMeteo } from '../../src/provider/open-meteo/protocol.ts'
import { horizonFor } from '../../src/weather/horizon.ts'

export const openMeteo = createOpenMeteo({
  horizon: horizonFor(13 * hourMs, 48),
  calendar: createCalendar('Asia/Dhaka'),
})
