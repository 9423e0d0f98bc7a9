// The weather of test keys: made up, the same at all times, different for each cell. Nothing is loaded or counted as demand. It is kept in
// a small memory of its own, because a timeline takes longer to make than a request may cost.

import type { CacheResult } from '../cache/cache-parts.ts'
import { createMemoryTier, keepEntry, type MemoryEntry } from '../cache/tiers.ts'
import { hourMs } from '../common/calendar.ts'
import type { Cell } from '../weather/cell.ts'
import { horizonFor, stepsWithin } from '../weather/horizon.ts'
import { syntheticTimeline } from '../weather/synthetic-timeline.ts'
import { bytesOf, type Timeline } from '../weather/timeline.ts'
import type { WeatherEndpointParts } from './weather-endpoints.ts'

// Noon of a day with sun and showers, long enough ago to be past on every clock: `last-modified` has it.
const instant = '2026-04-14T12:00:00Z'
const freshForMs = hourMs
// A few lists of the longest length with what is rendered of them.
const keptBytes = 8 * 1024 * 1024

type FixedWeather = {
  read(cell: Cell): CacheResult<Cell, Timeline>
  /** Only what is kept already: undefined where it would have to be made. */
  inMemory(cell: Cell): CacheResult<Cell, Timeline> | undefined
}

export const createFixedWeather = ({
  calendar,
  hourlyHours,
  catalogue,
}: Pick<WeatherEndpointParts, 'calendar' | 'hourlyHours' | 'catalogue'>): FixedWeather => {
  const asUtc = Date.parse(instant)
  const readAt = asUtc - calendar.offsetSecondsAt(asUtc) * 1_000
  const lengths = stepsWithin(horizonFor(freshForMs, hourlyHours))
  const memory = createMemoryTier<Timeline>(keptBytes)
  let keptFor = catalogue.current
  const make = (cell: Cell): MemoryEntry<Timeline> => {
    const value = syntheticTimeline(readAt, lengths, calendar, seedOf(cell))
    const facts = { fetchedAt: readAt, bytes: bytesOf(value), jitter: 0, generation: 0, run: null }
    return keepEntry(memory, cell.id, { value, ...facts })
  }
  const kept = (cell: Cell): MemoryEntry<Timeline> | undefined => {
    // What is rendered knows its places, and with them all of a replaced catalogue.
    if (keptFor !== catalogue.current) {
      keptFor = catalogue.current
      memory.clear()
    }
    return memory.get(cell.id)
  }
  const resultOf = (cell: Cell, { value, derived }: MemoryEntry<Timeline>): CacheResult<Cell, Timeline> => ({
    subject: cell,
    value,
    readAt,
    fetchedAt: readAt,
    freshUntil: readAt + freshForMs,
    outcome: 'hit',
    source: 'test',
    forwarded: false,
    collapsed: false,
    derived,
  })
  return {
    read: cell => resultOf(cell, kept(cell) ?? make(cell)),
    inMemory: cell => {
      const entry = kept(cell)
      return entry && resultOf(cell, entry)
    },
  }
}

const seedOf = ({ latitude, longitude }: Cell): number => Math.round(latitude * 1e7 + longitude * 1e4) | 0
