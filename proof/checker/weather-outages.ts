// Whether the status page of a gateway must tell of an outage of weather: several cells could not be loaded there, and no upstream has
// said any weather since. Where a success may have been held up on its way, nothing is demanded. Which other outages a page has, and
// since when, is in status-body.ts.

import type { Answer } from '../history.ts'
import { fleetConstants } from '../settings.ts'
import { durationOf, type Facts, minute } from './facts.ts'
import { isListed } from './paths.ts'
import { cellsOf } from './places.ts'
import { keptMs } from './status-spans.ts'

// Failed loads without a success in between, with which an outage begins.
const failuresInARow = 3
// Failures that are a quarter of an hour apart are of different outages, and one that nobody has met for as long may be over.
const togetherMs = 10 * minute
// A gateway hears of a success by the machine's time, while the clock may be moved.
const heardAfterRealMs = 500
// Meanwhile a cell is not loaded again, and its requests fail because of an earlier load.
const backoffMs = durationOf(fleetConstants.ABOHAWA_TEST_CACHE__RETRY_AFTER_AT_MOST)

// The others say something of one cell, of a limit or of the gateway.
const isOfProvider = /"code":"provider_(?!limited|not_sent|refused|too_much)/

export const isWeatherOut = (facts: Facts, { gateway, run, sent, seq, at }: Answer): boolean => {
  if (mayBeHeldUp(facts, seq)) return false
  const heardAt = lastHeardAt(facts, seq)
  const cells = facts.answers.flatMap(each => {
    const isFailure = each.status === 500 && !isListed(each) && isOfProvider.test(each.body)
    if (!isFailure || each.gateway !== gateway || each.run !== run) return []
    // A gateway backs off after the failures of others too, until an instant by their clocks.
    const isSince = each.sent.at - backoffMs - facts.skewSpan > heardAt && each.sent.at > at - togetherMs
    return isSince && each.at < sent.at - keptMs ? cellsOf(facts, each) : []
  })
  return new Set(cells).size >= failuresInARow
}

/** Whether faults of the links, or a process that stood still, may have delayed what was said before an event. */
const mayBeHeldUp = ({ firstTrouble, steps }: Facts, before: number): boolean =>
  firstTrouble < before || steps.some(({ step, seq }) => step.do === 'provider-link' && seq < before)

/** When every gateway had heard the last weather that was said before an event; Infinity where one may not have. */
const lastHeardAt = ({ said, events }: Facts, before: number): number => {
  const newest = said.findLast(({ status, seq }) => status === 200 && seq < before)
  if (!newest) return Number.NEGATIVE_INFINITY
  const later = events.find(({ seq, ms }) => seq > newest.seq && ms > newest.ms + heardAfterRealMs)
  return later?.at ?? Number.POSITIVE_INFINITY
}
