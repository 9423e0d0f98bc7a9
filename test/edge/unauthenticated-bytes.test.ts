// What a worker may send without a key's quota: its equal part of the burst and of the rate.

import t from 'tap'
import { createUnauthenticatedBytes } from '../../src/edge/unauthenticated-bytes.ts'
import { manualClock } from '../support/manual-clock.ts'

const rate = { unauthenticatedRateBytes: 64_000, unauthenticatedBurstBytes: 512_000 }

for (const workers of [1, 4, 16])
  t.test(`${workers} workers: each has an equal part of the burst, and of the rate from then on`, async t => {
    const clock = manualClock()
    let sent = 0
    const observer = {
      unauthenticatedSent: (bytes: number) => {
        sent += bytes
      },
      unauthenticatedRefused: () => {},
    }
    const bytes = createUnauthenticatedBytes(rate, workers, clock, observer)
    // Small bodies, so that what the last one takes beyond the part is next to nothing.
    const drawAll = (): number => {
      sent = 0
      for (let refused = false; !refused; )
        try {
          bytes.admit(100)
        } catch {
          refused = true
        }
      return sent
    }
    const isAbout = (drawn: number, part: number) => t.ok(drawn >= part && drawn < part + 1_600, `${drawn}`)
    isAbout(drawAll(), rate.unauthenticatedBurstBytes / workers)
    clock.advance(2_000)
    // The last answer before may have left a debt of some of its bytes.
    isAbout(drawAll() + 800, (2 * rate.unauthenticatedRateBytes) / workers)
  })
