// Without it a bad day could look like a good one on the status page, or a text be missing there in one language.

import t from 'tap'
import { createServedStatus } from '../../src/api/status-page.ts'
import { hourMs, minuteMs, utcDayMs } from '../../src/common/calendar.ts'
import type { ServiceStatus } from '../../src/telemetry/service-status.ts'
import { manualClock, noon } from '../support/manual-clock.ts'

const at = Date.parse(noon)
const before = (minutes: number): number => at - minutes * minuteMs
const well: ServiceStatus = {
  ...{ at, freshShare: null, medianAgeMs: null, oldestAgeMs: null, runAt: null },
  ...{ outSince: { provider: null, store: null }, days: [], incidents: [] },
}

const serve = (read: () => ServiceStatus) => {
  const clock = manualClock()
  const page = createServedStatus({ read: async () => read(), timeZone: 'Asia/Dhaka', clock })
  const get = (path = '/status', query = 'lang=en') =>
    page({ path, query, acceptLanguage: undefined, address: undefined })
  return { clock, get }
}
/** The page, or the JSON. */
const textOf = async (more: Partial<ServiceStatus>, query?: string, path?: string): Promise<string> => {
  const { chunks } = await serve(() => ({ ...well, ...more })).get(path, query)
  return Buffer.concat([...chunks]).toString()
}
/** What a pattern finds in its groups, each time. */
const allIn = (text: string, pattern: RegExp): (string | undefined)[][] =>
  [...text.matchAll(pattern)].map(found => found.slice(1))

t.test(
  'it is read once in five seconds, also after a clock was set back, and made where it differs',
  async t => {
    let reads = 0
    let status = well
    const { clock, get } = serve(() => {
      reads += 1
      return status
    })
    const first = await get()
    clock.advance(4_999)
    t.equal(await get(), first)
    t.equal(reads, 1)
    clock.advance(1)
    t.equal(await get(), first, 'it says the same')
    t.equal(reads, 2)
    clock.advance(-5_000)
    await get()
    t.equal(reads, 3)
    status = { ...well, at: at + minuteMs }
    clock.advance(5_000)
    t.not(await get(), first)
    t.not(await get('/status', 'lang=bn'), await get())
    t.match(await get(), {
      type: 'text/html; charset=utf-8',
      headers: /\r\ncontent-language: en\r\nrefresh: 60\r\n$/,
      vary: 'accept-encoding, accept-language',
    })
    t.hasStrict(await get('/status.json'), { type: 'application/json; charset=utf-8' })
  },
)

t.test(
  'the JSON has shares that are never rounded up, ages in seconds, and null for what is unknown',
  async t => {
    const unknown = { availability: null, outageMinutes: { provider: null, store: null } }
    const status: Partial<ServiceStatus> = {
      ...{
        freshShare: 0.999_996,
        medianAgeMs: 5 * minuteMs,
        oldestAgeMs: 90 * minuteMs,
        runAt: at - 6 * hourMs,
      },
      outSince: { provider: before(1), store: before(2) },
      days: [
        { day: '2026-11-21', availability: 0.999_996, outageMinutes: { provider: 12, store: 0 } },
        { day: '2026-11-20', ...unknown },
      ],
    }
    t.strictSame(JSON.parse(await textOf(status, '', '/status.json')), {
      at: '2026-11-21T06:00:00.000Z',
      weather: {
        ...{ fresh_share: 0.999_99, median_age_seconds: 300, oldest_age_seconds: 5_400 },
        model_run: '2026-11-21T00:00:00.000Z',
      },
      outages: [
        { of: 'weather', since: '2026-11-21T05:59:00.000Z' },
        { of: 'quotas', since: '2026-11-21T05:58:00.000Z' },
      ],
      days: [
        { day: '2026-11-21', availability: 0.999_99, outage_minutes: { weather: 12, quotas: 0 } },
        { day: '2026-11-20', availability: null, outage_minutes: { weather: null, quotas: null } },
      ],
    })
    t.match(JSON.parse(await textOf({}, '', '/status.json')), {
      weather: { fresh_share: null, median_age_seconds: null, oldest_age_seconds: null, model_run: null },
      outages: [],
    })
  },
)

t.test('a day is as bad as its errors or its longest outage, and says both', async t => {
  type Day = [availability: number | null, provider: number | null, store: number | null]
  const days: [...Day, state: string, text: string][] = [
    [1, 0, 0, 'good', '100% available, no outage'],
    [0.999, 0, 0, 'good', '99.9% available, no outage'],
    [0.999_996, 0, 0, 'good', '99.999% available, no outage'],
    [0.998_995, 0, 0, 'warn', '99.899% available, no outage'],
    [0.99, 0, 0, 'warn', '99% available, no outage'],
    [0.989_995, 0, 0, 'bad', '98.999% available, no outage'],
    [1, 1, 0, 'warn', '100% available, weather delayed for 1 min'],
    [1, 0, 59, 'warn', '100% available, keys and quotas affected for 59 min'],
    [1, 60, 0, 'bad', '100% available, weather delayed for 1 h'],
    [1, 2, 3, 'warn', '100% available, weather delayed for 2 min, keys and quotas affected for 3 min'],
    [1, null, 0, 'good', '100% available'],
    [1, null, null, 'good', '100% available'],
    [null, 0, 0, 'good', 'no outage'],
    [null, 5, null, 'warn', 'weather delayed for 5 min'],
    [null, null, 5, 'warn', 'keys and quotas affected for 5 min'],
    [null, null, null, 'none', 'no data'],
  ]
  const dayOf = (i: number): number => 30 - i
  const page = await textOf({
    days: days.map(([availability, provider, store], i) => ({
      ...{ day: `2026-11-${dayOf(i)}`, availability, outageMinutes: { provider, store } },
    })),
  })
  const bars = allIn(page, /<label class="(\w+)"><input [^>]*?( checked)?><span>([^<]*)<\/span>/g)
  t.strictSame(
    bars.reverse(),
    days.map(([, , , state, text], i) => [
      state,
      i === 0 ? ' checked' : undefined,
      `${dayOf(i)} Nov: ${text}`,
    ]),
  )
  t.match(page, />Last 16 days</)
  t.match(page, />15 days ago</)
})

t.test('outages that are on come first, the latest before others; fifty that are over follow', async t => {
  const incidentsIn = (page: string) =>
    allIn(page, /<h3>([^<]*)<\/h3><p>([^<]*)<\/p><p class="note">([^<]*)</g)
  const [weather, quotas] = ['Weather updates delayed', 'API keys and quotas affected']
  const page = await textOf({
    outSince: { provider: before(30), store: before(10) },
    incidents: [
      { kind: 'store', from: at - utcDayMs, to: at - utcDayMs },
      { kind: 'provider', from: before(1_450 + 720), to: before(1_420 + 720) },
    ],
  })
  t.strictSame(incidentsIn(page), [
    [quotas, 'Since 11:50 (ongoing)', 'New API keys may not work. Some requests may fail.'],
    [weather, 'Since 11:30 (ongoing)', 'Responses have the last known weather. Some requests may fail.'],
    [
      ...[quotas, '20 Nov 2026, 12:00 to 12:00 (under a minute)'],
      'New API keys may not have worked. Some requests may have failed.',
    ],
    [
      ...[weather, '19 Nov 2026, 23:50 to 20 Nov, 00:20 (30 min)'],
      'Responses had the last known weather. Some requests may have failed.',
    ],
  ])
  const many = Array.from({ length: 51 }, (_, i) => {
    return { kind: 'provider' as const, from: before(10 * i + 9), to: before(10 * i + 8) }
  })
  for (const count of [0, 1, 50, 51]) {
    const shown = await textOf({ incidents: many.slice(0, count) })
    t.equal(incidentsIn(shown).length, Math.min(50, count))
    t.equal(shown.includes('The list shows the latest 50 incidents.'), count > 50)
    t.equal(shown.includes('No incidents in the last 0 days.'), count === 0)
  }
  const [one] = many
  const both = await textOf({ outSince: { provider: at, store: null }, incidents: one ? [one] : [] })
  t.equal(incidentsIn(both).length, 2)
})

t.test('the weather in demand has its share and ages, and what is unknown is left out', async t => {
  const factsIn = async (more: Partial<ServiceStatus>) =>
    allIn(await textOf(more), /<dt>([^<]*)<\/dt><dd>(?:<span class="badge (\w+)">)?([^<]*)</g)
  const ages = { medianAgeMs: 0, oldestAgeMs: 85 * minuteMs, runAt: at - 6 * hourMs }
  t.strictSame(await factsIn({ freshShare: 0.989_99, ...ages }), [
    ['Fresh cells', 'warn', '98.9%'],
    ['Median age', undefined, 'under a minute'],
    ['Oldest', undefined, '1 h 25 min'],
    ['Last model run', undefined, '06:00'],
  ])
  for (const [freshShare, state, text] of [
    [0.99, 'good', '99%'],
    [0.9996, 'good', '99.9%'],
    [1, 'good', '100%'],
  ] as const)
    t.strictSame(await factsIn({ freshShare }), [['Fresh cells', state, text]])
  t.strictSame(await factsIn({}), [['Fresh cells', undefined, 'no requests at the moment']])
  t.strictSame((await factsIn({ runAt: at - 18 * hourMs }))[1], [
    'Last model run',
    undefined,
    '20 Nov, 18:00',
  ])
})

// An element without its text, or nothing between two signs.
const gap =
  /<(p|h\d|span|dt|dd|a|title)(?: [^>]*)?>\s*<\/\1>|<small>\s*<|<\/i><\/li>|[:,] ?<\/span>|[:,] ?,|: ?<\/p>|\(\)/

t.test('no text is missing, in either language, whatever is out', async t => {
  const unknown = { availability: null, outageMinutes: { provider: null, store: null } }
  const out = { availability: 0.5, outageMinutes: { provider: 61, store: 62 } }
  const quiet = { availability: 1, outageMinutes: { provider: 0, store: 0 } }
  const days = [quiet, out, unknown].map((day, i) => ({ day: `2026-11-${21 - i}`, ...day }))
  const incidents = (['provider', 'store'] as const).flatMap(kind =>
    Array.from({ length: 25 + Number(kind === 'store') }, () => ({ kind, from: before(1), to: before(1) })),
  )
  const ages = { freshShare: 1, medianAgeMs: 0, oldestAgeMs: 0, runAt: at }
  for (const [more, state, summary] of [
    [{}, 'good', 'All systems operational'],
    [{ ...ages, outSince: { provider: at, store: null } }, 'bad', 'Weather updates are delayed'],
    [{ days, outSince: { provider: null, store: at } }, 'bad', 'API keys and quotas are affected'],
    [
      ...[{ days, incidents, outSince: { provider: at, store: at } }, 'bad'],
      'Weather updates, API keys and quotas are affected',
    ],
  ] as [Partial<ServiceStatus>, string, string][]) {
    const page = await textOf(more)
    t.match(page, `<div class="notice ${state}"><div><h2>${summary}</h2>`)
    for (const [language, text] of [
      ['en', page],
      ['bn', await textOf(more, 'lang=bn')],
    ] as const) {
      t.equal(gap.exec(text)?.[0], undefined, `${language}: ${summary}`)
      t.match(text, `<html lang="${language}">`)
      t.match(text, `hreflang="${language === 'en' ? 'bn' : 'en'}"`)
    }
    t.match(
      page,
      /<title>Weather service status<.*As of 21 Nov 2026, 12:00. Time zone: <span lang="en">Asia\/Dhaka</s,
    )
  }
})
