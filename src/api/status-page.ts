// The status page in one language, and the same as JSON. HTML without a script: what it shows is as old as the request.

import { isoOf, isoOrNull } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { createFigures, type Figures, type Language } from '../common/page/figures.js'
import { badge, facts, type Html, markup, notice, section } from '../common/page/html.ts'
import type { OutageKind, ServiceDay, ServiceStatus } from '../telemetry/service-status.ts'
import type { Representation } from './endpoint.ts'
import { jsonType } from './problem.ts'
import { always, languageOf, ofPage, represent, type ServePage } from './served-reference.ts'
import { sayIn } from './status-words.ts'

export type StatusParts = {
  /** Never rejects. */
  readonly read: () => Promise<ServiceStatus>
  readonly timeZone: string
  readonly clock: Clock
}

const statusData = '/status.json'
const keepForMs = 5_000
const reloadedAfterSeconds = 60

export const createServedStatus = ({ read, timeZone, clock }: StatusParts): ServePage => {
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<ServiceStatus> | undefined
  let shown = ''
  const made = new Map<string, Representation>()
  // Formats of the runtime, which take longer to make than the page.
  const figures: { [language in Language]?: Figures } = {}

  const statusNow = (): Promise<ServiceStatus> => {
    const now = clock.now()
    if (!reading || Math.abs(now - readAt) >= keepForMs) {
      readAt = now
      reading = read()
    }
    return reading
  }
  const make = (name: Language | typeof statusData, status: ServiceStatus): Representation => {
    if (name === statusData) return represent(Buffer.from(statusJson(status)), jsonType, always)
    figures[name] ??= createFigures(name, timeZone)
    const page = Buffer.from(statusPage(status, figures[name]))
    // The page has no script that could reload it.
    const headers = `${ofPage}content-language: ${name}\r\nrefresh: ${reloadedAfterSeconds}\r\n`
    return represent(page, 'text/html; charset=utf-8', headers, 'accept-encoding, accept-language')
  }
  return async ({ path, query, acceptLanguage }) => {
    const status = await statusNow()
    const text = JSON.stringify(status)
    if (text !== shown) {
      shown = text
      made.clear()
    }
    const name = path === '/status' ? languageOf(query, acceptLanguage) : statusData
    const kept = made.get(name) ?? make(name, status)
    made.set(name, kept)
    return kept
  }
}

// Never rounded up: a day with one error in a million answers was not without one.
const rounded = (share: number): number => Math.floor(share * 1e5) / 1e5
const secondsOrNull = (ms: number | null): number | null => (ms === null ? null : ms / 1000)

/** The body of /status.json. */
const statusJson = ({ at, outSince, days, ...weather }: ServiceStatus): string =>
  JSON.stringify({
    at: isoOf(at),
    weather: {
      fresh_share: weather.freshShare === null ? null : rounded(weather.freshShare),
      median_age_seconds: secondsOrNull(weather.medianAgeMs),
      oldest_age_seconds: secondsOrNull(weather.oldestAgeMs),
      model_run: isoOrNull(weather.runAt),
    },
    outages: [
      ...(outSince.provider === null ? [] : [{ of: 'weather', since: isoOf(outSince.provider) }]),
      ...(outSince.store === null ? [] : [{ of: 'quotas', since: isoOf(outSince.store) }]),
    ],
    days: days.map(({ day, availability, outageMinutes }) => ({
      day,
      availability: availability === null ? null : rounded(availability),
      outage_minutes: { weather: outageMinutes.provider, quotas: outageMinutes.store },
    })),
  })

const wellBelow = 0.999
const badBelow = 0.99
const longOutageMinutes = 60
const maxIncidents = 50

const kinds = ['provider', 'store'] as const
type Say = ReturnType<typeof sayIn>

/** @param figures in whose language and time zone it is */
const statusPage = (status: ServiceStatus, figures: Figures): string => {
  const { language, timeZone } = figures
  const say = sayIn(language)
  const nowIso = isoOf(status.at)
  const count = figures.count(status.days.length)
  const title = say('title')
  const other = language === 'en' ? 'bn' : 'en'
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<title>${markup(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="status.css">
</head>
<body>
<header class="bar">
<img src="docs/icon.svg" alt="" width="34" height="34">
<h1>${markup(title)} <small>${markup(say('asOf', figures.dateTime(nowIso)))} <span lang="en">${markup(timeZone)}</span></small></h1>
<p class="links"><a href="docs?lang=${language}">${markup(say('reference'))}</a> <a href="status.json" lang="en">JSON</a> <a href="?lang=${other}" hreflang="${other}" lang="${other}">${markup(say('otherLanguage'))}</a></p>
</header>
<main>
${summaryOf(status, say)}
${section('days', say('lastDays', count), stripOf(status.days, figures, say))}
${section('incidents', say('incidents'), incidentsOf(status, figures, say))}
${section('weather', say('weather'), weatherOf(status, figures, say))}
</main>
</body>
</html>
`
}

const summaryOf = ({ outSince }: ServiceStatus, say: Say): Html => {
  const out = kinds.filter(kind => outSince[kind] !== null)
  const [only] = out
  const word = only === undefined ? 'allWell' : out.length > 1 ? 'bothOut' : (`${only}Out` as const)
  return notice(only === undefined ? 'good' : 'bad', `<h2>${markup(say(word))}</h2>`)
}

const percentOf = (share: number, figures: Figures): string => `${figures.plain(rounded(share) * 100)}%`

const stateOf = ({ availability, outageMinutes: { provider, store } }: ServiceDay) => {
  if (availability === null && provider === null && store === null) return 'none'
  const minutes = Math.max(provider ?? 0, store ?? 0)
  if ((availability ?? 1) < badBelow || minutes >= longOutageMinutes) return 'bad'
  return (availability ?? 1) < wellBelow || minutes > 0 ? 'warn' : 'good'
}

// A day is a radio button: one stop of the Tab key, arrow keys between days, a touch on a phone, and no script.
const stripOf = (days: readonly ServiceDay[], figures: Figures, say: Say): Html => {
  const textOf = (day: ServiceDay): string => {
    const { availability, outageMinutes } = day
    const outages = kinds.flatMap(kind => {
      const minutes = outageMinutes[kind]
      return minutes ? [say(`${kind}For`, figures.duration(minutes * 60))] : []
    })
    const isQuiet = kinds.every(kind => outageMinutes[kind] === 0)
    const parts = [
      ...(availability === null ? [] : [say('available', percentOf(availability, figures))]),
      ...outages,
      ...(isQuiet ? [say('noOutage')] : []),
    ]
    return `${figures.day(day.day)}: ${parts.join(', ') || say('noData')}`
  }
  const bars = days.toReversed().map((day, i) => {
    const isToday = i === days.length - 1 ? ' checked' : ''
    return `<label class="${stateOf(day)}"><input type="radio" name="day" autocomplete="off"${isToday}><span>${markup(textOf(day))}</span></label>`
  })
  const legend = (['Good', 'Warn', 'Bad'] as const).map(state => [state.toLowerCase(), say(`legend${state}`)])
  const samples = [...legend, ['none', say('noData')]].map(
    ([state, text]) => `<li><i class="${state}"></i>${markup(text ?? '')}</li>`,
  )
  return `<div class="strip" role="radiogroup" aria-labelledby="days">
${bars.join('\n')}
</div>
<p class="row between note" aria-hidden="true"><span>${markup(say('daysAgo', figures.count(days.length - 1)))}</span><span>${markup(say('today'))}</span></p>
<ul class="legend note">${samples.join('')}</ul>
<p class="note">${markup(say('daysNote'))}</p>`
}

const incidentsOf = ({ at, outSince, incidents, days }: ServiceStatus, figures: Figures, say: Say): Html => {
  const instant = (ms: number): string => figures.instant(isoOf(ms), isoOf(at))
  const item = (kind: OutageKind, when: string, affects: 'Affects' | 'Affected'): Html =>
    `<li><h3>${markup(say(`${kind}Incident`))}</h3><p>${markup(when)}</p><p class="note">${markup(say(`${kind}${affects}`))}</p></li>`
  const on = kinds
    .flatMap(kind => (outSince[kind] === null ? [] : [{ kind, from: outSince[kind] }]))
    .sort((one, other) => other.from - one.from)
    .map(({ kind, from }) => item(kind, say('ongoing', instant(from)), 'Affects'))
  const over = incidents.slice(0, maxIncidents).map(({ kind, from, to }) => {
    const lasted = from === to ? say('underMinute') : figures.duration((to - from) / 1000)
    // The end has its day where that is not the day of the begin.
    const end = figures.instant(isoOf(to), isoOf(from))
    return item(kind, say('ended', figures.dateTime(isoOf(from)), end, lasted), 'Affected')
  })
  if (on.length + over.length === 0) return `<p>${markup(say('noIncidents', figures.count(days.length)))}</p>`
  const more =
    incidents.length > maxIncidents
      ? `<p class="note">${markup(say('moreIncidents', figures.count(maxIncidents)))}</p>`
      : ''
  return `<ul class="incidents">${[...on, ...over].join('\n')}</ul>${more}`
}

const weatherOf = (status: ServiceStatus, figures: Figures, say: Say): Html => {
  const { at, freshShare, medianAgeMs, oldestAgeMs, runAt } = status
  const age = (ms: number | null): string =>
    ms === 0 ? say('underMinute') : figures.duration(secondsOrNull(ms))
  const fresh =
    freshShare === null
      ? markup(say('noDemand'))
      : badge(freshShare < badBelow ? 'warn' : 'good', figures.share(Math.floor(freshShare * 1e3) / 1e3))
  const known = facts([
    [say('freshShare'), fresh],
    [say('medianAge'), medianAgeMs === null ? undefined : age(medianAgeMs)],
    [say('oldestAge'), oldestAgeMs === null ? undefined : age(oldestAgeMs)],
    [say('run'), runAt === null ? undefined : figures.instant(isoOf(runAt), isoOf(at))],
  ])
  return `${known}<p class="note">${markup(say('weatherNote'))}</p>`
}
