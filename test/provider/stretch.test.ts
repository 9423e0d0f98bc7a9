// Without it the daily budget could run out before midnight, or freshness could jump.

import t from 'tap'
import { utcDayMs } from '../../src/common/calendar.ts'
import { priceOf, stretchAt } from '../../src/provider/spending-windows.ts'
import { createRandom } from '../../tools/load/traffic/generate/random.ts'

type Day = Parameters<typeof priceOf>[0] & { demandPerDay: number }
const stretchOf = ({ demandPerDay, ...day }: Day): number => stretchAt(priceOf(day), demandPerDay)

const next = createRandom(7, 'days')
const anyDay = (): Day => {
  const limit = 100 + next() * 20_000
  return {
    limit,
    reserve: next() * 0.9,
    spent: next() < 0.1 ? limit : next() * limit,
    demandPerDay: next() * limit * 8,
    msLeft: next() * utcDayMs,
  }
}
const days = Array.from({ length: 20_000 }, anyDay)

t.test('it is never below 1 and never smaller after more spending or with more demand', async t => {
  let wrong = 0
  for (const day of days) {
    const stretch = stretchOf(day)
    const spentMore = stretchOf({ ...day, spent: day.spent + next() * day.limit })
    const moreDemand = stretchOf({ ...day, demandPerDay: day.demandPerDay * (1 + next()) })
    if (!(stretch >= 1 && spentMore >= stretch && moreDemand >= stretch)) wrong += 1
  }
  t.equal(wrong, 0)
})

t.test('demand that the budget can bear all day is not stretched at all', async t => {
  for (const day of days) {
    const demandPerDay = next() * day.limit * (1 - day.reserve) * 0.999
    const spent = demandPerDay * (1 - day.msLeft / utcDayMs)
    if (stretchOf({ ...day, demandPerDay, spent }) !== 1)
      t.fail(`${demandPerDay} of ${day.limit} is stretched`)
  }
})

t.test('a day with nothing left stretches without end', async t => {
  const day = { limit: 1_000, reserve: 0.1, demandPerDay: 100, msLeft: 1 }
  t.equal(stretchOf({ ...day, spent: 900 }), Number.POSITIVE_INFINITY)
  t.equal(stretchOf({ ...day, spent: 2_000 }), Number.POSITIVE_INFINITY)
  t.equal(stretchOf({ ...day, spent: 899 }), 1)
  t.equal(stretchOf({ ...day, spent: 900, demandPerDay: 0 }), 1, 'but nothing that nobody wants')
})

t.test('under steady demand the budget lasts to midnight, and the stretch does not jump there', async t => {
  const stepMs = 60_000
  for (let trial = 0; trial < 50; trial++) {
    const limit = 1_000 + next() * 20_000
    const reserve = next() * 0.5
    const demandPerDay = limit * (0.2 + next() * 6)
    let spent = 0
    let last = Number.NaN
    for (let at = 0; at < 3 * utcDayMs; at += stepMs) {
      if (at % utcDayMs === 0) spent = 0
      const stretch = stretchOf({ limit, reserve, spent, demandPerDay, msLeft: utcDayMs - (at % utcDayMs) })
      if (Math.abs(stretch - last) > 0.01 * last) t.fail(`from ${last} to ${stretch} at ${at}`)
      last = stretch
      spent += (demandPerDay / utcDayMs / stretch) * stepMs
    }
    if (spent > limit * (1 - reserve) * 1.001) t.fail(`${spent} of ${limit} with ${reserve} in reserve`)
  }
})
