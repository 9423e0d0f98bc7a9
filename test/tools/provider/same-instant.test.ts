// Without it the sections of one forecast could disagree about the same instant.

import t from 'tap'
import { allDaily, allHourly, allInstant, dhaka, simulate, three, withoutTimings } from './simulated.ts'

const hourMs = 3_600_000
const iso = (ms: number) => new Date(ms).toISOString()
const local = (ms: number) => iso(ms + 6 * hourMs).slice(0, 16)

t.test('minutely_15 at a step is what current says then, with runs until the next one', async t => {
  // Starts in the wettest and in the stormiest weeks, and crosses midnight in both time zones.
  for (const [start, runs, steps] of [
    ['2026-07-14T12:00:00Z', 'none', 60],
    ['2026-04-20T09:00:00Z', 'none', 60],
    ['2026-07-14T12:45:00Z', 'ecmwf', 23],
  ] as const) {
    const { send, steer } = await simulate(t, { runs }, start)
    const from = Date.parse(start)
    const { text } = await send(three(`minutely_15=${allInstant}&forecast_minutely_15=60`))
    const series = JSON.parse(text)
    for (let step = 0; step < steps; step++) {
      const now = from + step * 900_000
      await steer({ now: iso(now + (step % 15) * 60_000) })
      const { body } = await send(three(`current=${allInstant}`))
      for (const [i, { current }] of body.entries()) {
        const { minutely_15 } = series[i]
        const columns = Object.entries(minutely_15 as Record<string, unknown[]>)
        const expected = Object.fromEntries(columns.map(([name, values]) => [name, values[step]]))
        t.strictSame(current, { ...expected, interval: 900 }, `${local(now)} point ${i}`)
      }
    }
    const { body } = await send(dhaka('current=rain'))
    t.not(series[0].minutely_15.time[0], body.current.time, 'the clock did move')
  }
})

t.test('an hour and its :00 quarter share instants; its rain is the sum of its quarters', async t => {
  const { send } = await simulate(t, {}, '2026-07-14T12:00:00Z')
  const { body } = await send(three(`minutely_15=${allHourly}&hourly=${allHourly}&forecast_days=9`))
  let wet = 0
  for (const { minutely_15: quarters, hourly: hours } of body)
    hours.time.slice(1).forEach((time: string, index: number) => {
      const hour = index + 1
      const quarter = hour * 4
      t.equal(quarters.time[quarter], time)
      for (const name of allHourly.split(',')) {
        if (/^(rain|showers|precipitation|weather_code|wind_gusts_10m)$/.test(name)) continue
        if (hours[name][hour] !== quarters[name][quarter]) t.fail(`${name} at ${time}`)
      }
      for (const name of ['precipitation', 'rain', 'showers']) {
        const sum = quarters[name].slice(quarter - 3, quarter + 1).reduce((a: number, b: number) => a + b)
        if (Math.abs(sum - hours[name][hour]) > 1e-9)
          t.fail(`${name} at ${time}: ${sum} ${hours[name][hour]}`)
      }
      const gust = Math.max(...quarters.wind_gusts_10m.slice(quarter - 3, quarter + 1))
      if (gust !== hours.wind_gusts_10m[hour]) t.fail(`gusts at ${time}`)
      if (hours.precipitation[hour] > 0) wet += 1
    })
  t.ok(wet > 50, `${wet} wet hours were compared`)
})

t.test('a day is made of its local hours', async t => {
  const { send } = await simulate(t, {}, '2026-05-14T12:00:00Z')
  for (const zone of ['Asia%2FDhaka', 'Asia%2FKolkata', 'GMT', 'Asia%2FKathmandu']) {
    const { body } = await send(
      `/v1/forecast?latitude=24.9&longitude=91.9&timezone=${zone}&hourly=${allHourly}&daily=${allDaily}&forecast_days=9`,
    )
    const { hourly, daily } = body
    daily.time.forEach((day: string, i: number) => {
      const hours = (name: string): number[] => hourly[name].slice(i * 24, i * 24 + 24)
      t.equal(hourly.time[i * 24], `${day}T00:00`)
      const most = (name: string) => Math.max(...hours(name))
      t.equal(daily.temperature_2m_max[i], most('temperature_2m'), `${day} in ${zone}`)
      t.equal(daily.temperature_2m_min[i], Math.min(...hours('temperature_2m')))
      t.equal(daily.weather_code[i], most('weather_code'))
      t.equal(daily.precipitation_probability_max[i], most('precipitation_probability'))
      const sum = hours('precipitation').reduce((a, b) => a + b)
      t.ok(Math.abs(sum - daily.precipitation_sum[i]) < 1e-9)
    })
  }
})

t.test('is_day follows sunrise and sunset', async t => {
  const { send, steer } = await simulate(t)
  for (const day of ['2026-01-10', '2026-06-21', '2026-10-05']) {
    await steer({ now: `${day}T00:00:00Z` })
    const { body } = await send(three('minutely_15=is_day&daily=sunrise,sunset&forecast_days=3'))
    for (const { minutely_15, daily } of body)
      daily.time.forEach((_day: string, i: number) => {
        minutely_15.time.slice(i * 96, i * 96 + 96).forEach((time: string, step: number) => {
          const up = time > daily.sunrise[i] && time <= daily.sunset[i]
          const near = time === daily.sunrise[i] || time === daily.sunset[i]
          if (!near && up !== (minutely_15.is_day[i * 96 + step] === 1)) t.fail(`${time} ${daily.sunrise[i]}`)
        })
      })
  }
})

t.test('without runs an instant has one weather for ever', async t => {
  const { send, steer } = await simulate(t, { runs: 'none' }, '2026-07-14T00:00:00Z')
  const temperatures = async () =>
    (await send(dhaka('hourly=temperature_2m&forecast_days=9'))).body.hourly.temperature_2m
  const meta = async () => (await send('/data/ecmwf_ifs/static/meta.json')).text
  const [early, run] = [await temperatures(), await meta()]
  await steer({ now: '2026-07-20T00:00:00Z' })
  t.strictSame((await temperatures()).slice(0, 72), early.slice(144, 216))
  t.equal(await meta(), run)
})

t.test('equal seed, run and instant give equal answers in two simulators; another seed does not', async t => {
  const query = three(`minutely_15=${allInstant}&hourly=${allHourly}&daily=${allDaily}&forecast_days=9`)
  const now = '2026-06-14T03:10:00Z'
  const [first, second, other] = await Promise.all([7, 7, 8].map(seed => simulate(t, { seed }, now)))
  const textOf = async (simulator = first) => withoutTimings((await simulator?.send(query))?.text ?? '')
  const text = await textOf()
  await first?.send(dhaka('hourly=rain'))
  t.strictSame([await textOf(second), await textOf()], [text, text], 'also when requested again')
  t.not(await textOf(other), text)
})

t.test('a new run changes the weather slightly, the far days more, and the past not at all', async t => {
  const simulator = await simulate(t)
  const { send, steer } = simulator
  const query = three('hourly=temperature_2m,precipitation&forecast_days=9&past_days=1')
  const meta = async (model = 'ecmwf_ifs') => (await send(`/data/${model}/static/meta.json`)).body
  await steer({ now: '2026-07-14T12:29:59Z' })
  const before = (await send(query)).body
  const oldRun = await meta()
  await steer({ now: '2026-07-14T12:30:00Z' })
  const after = (await send(query)).body
  const newRun = await meta()
  const seconds = (time: string) => Date.parse(`2026-07-14T${time}Z`) / 1000
  t.equal(oldRun.last_run_initialisation_time, seconds('00:00'))
  t.equal(newRun.last_run_initialisation_time, seconds('06:00'))
  t.equal(newRun.last_run_availability_time, seconds('12:30'))
  t.equal(newRun.update_interval_seconds, 21_600)
  const runTimes = ['initialisation', 'modification', 'availability'].map(name => `last_run_${name}_time`)
  for (const name of [...runTimes, 'update_interval_seconds', 'data_end_time'])
    for (const model of ['dwd_icon', 'ncep_gfs013']) t.type((await meta(model))[name], 'number', model)

  const change = (from: number, to: number): number => {
    let sum = 0
    for (const [i, { hourly }] of before.entries())
      for (let hour = from; hour < to; hour++)
        sum += Math.abs(hourly.temperature_2m[hour] - after[i].hourly.temperature_2m[hour])
    return sum / (3 * (to - from))
  }
  t.equal(change(0, 30), 0, 'what lay before both runs stays')
  t.ok(change(42, 48) > 0 && change(42, 66) < 0.5, `near hours change by ${change(42, 66)}`)
  t.ok(change(192, 240) > 2 * change(42, 66), `far hours by ${change(192, 240)}`)
  t.ok(change(192, 240) < 4)
})

t.test('neighbouring places and moments have similar weather', async t => {
  const { send } = await simulate(t, {}, '2026-07-14T00:00:00Z')
  const near = '/v1/forecast?latitude=24.000,24.010,24.07&longitude=90.000,90.000,90.09'
  const { body } = await send(`${near}&timezone=Asia%2FDhaka&minutely_15=temperature_2m&forecast_days=3`)
  const [a, b, c] = body.map(({ minutely_15 }: { minutely_15: { temperature_2m: number[] } }) => minutely_15)
  t.strictSame(a.temperature_2m, b.temperature_2m, 'one model cell, one temperature')
  a.temperature_2m.forEach((value: number, i: number) => {
    if (Math.abs(value - c.temperature_2m[i]) > 2.5) t.fail(`places differ at ${i}`)
    if (i > 0 && Math.abs(value - a.temperature_2m[i - 1]) > 2) t.fail(`jump at ${i}`)
  })
})
