// Writes slices of a timeline as JSON text, as JSON.stringify would, without intermediate objects.

import { type Calendar, dayNumber, dayOfNumber, hourMs, quarterHourMs } from '../common/calendar.ts'
import type { Series, Timeline } from './timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './weather-variables.ts'

export type TimelineText = ReturnType<typeof createTimelineText>

// Weather has few distinct numbers; the bound covers bad responses.
const maxNumbers = 20_000

export const createTimelineText = (calendar: Calendar) => {
  const numbers = new Map<number, string>()
  const textOf = (value: number | undefined): string => {
    if (value === undefined || Number.isNaN(value)) return 'null'
    // The provider's numbers have at most two decimals and stay far below 8,192, where 32 bits hold three decimals.
    // "+ 0" turns -0 into 0.
    const thousandths = Math.round(value * 1000) + 0
    let text = numbers.get(thousandths)
    if (text === undefined) {
      text = String(thousandths / 1000)
      if (numbers.size >= maxNumbers) numbers.clear()
      numbers.set(thousandths, text)
    }
    return text
  }

  /** The times of steps: the same for every timeline, since all begin at whole steps. */
  const timesOf = (timeOf: (start: number, step: number) => string) => {
    let last = { first: Number.NaN, count: 0, text: '' }
    return (first: number, count: number): string => {
      if (last.first !== first || last.count !== count) {
        const times = Array.from({ length: count }, (_, i) => `"${timeOf(first, i)}"`)
        last = { first, count, text: `"time":[${times.join(',')}]` }
      }
      return last.text
    }
  }
  const hours = timesOf((first, step) => calendar.localMinute(first + step * hourMs))
  const days = timesOf((first, step) => dayOfNumber(first + step))

  const columns = (
    values: Float32Array,
    { offset, length }: Series,
    units: object,
    from: number,
    count: number,
  ): string => {
    let text = ''
    let column = offset
    // Joined in one call: a string for each step would be a sixth of a miss's garbage.
    const texts: string[] = Array(count).fill('')
    for (const name of Object.keys(units)) {
      for (let i = 0; i < count; i++) texts[i] = textOf(values[column + from + i])
      text += `,"${name}":[${texts.join()}]`
      column += length
    }
    return text
  }

  return {
    /** The current quarter-hour at `now`; undefined when the timeline does not cover it, here and below. */
    current: ({ values, quarterHours }: Timeline, now: number): string | undefined => {
      const { start, length, offset } = quarterHours
      const step = Math.floor((now - start) / quarterHourMs)
      if (step < 0 || step >= length) return undefined
      const fields = Object.keys(currentUnits).map(
        (name, i) => `,"${name}":${textOf(values[offset + i * length + step])}`,
      )
      const time = calendar.localMinute(start + step * quarterHourMs)
      return `{"time":"${time}","interval":${quarterHourMs / 1000}${fields.join('')}}`
    },
    /** `count` hours from the current local hour on. */
    hourly: ({ values, hours: series }: Timeline, now: number, count: number): string | undefined => {
      const from = Math.floor((now - series.start) / hourMs)
      if (from < 0 || from + count > series.length) return undefined
      return `{${hours(series.start + from * hourMs, count)}${columns(values, series, hourlyUnits, from, count)}}`
    },
    /** `count` days from the local day of `now` on. */
    daily: ({ values, days: series }: Timeline, now: number, count: number): string | undefined => {
      const from = dayNumber(calendar.dayOf(now)) - series.start
      if (from < 0 || from + count > series.length) return undefined
      return `{${days(series.start + from, count)}${columns(values, series, dailyUnits, from, count)}}`
    },
  }
}
