// The status page in one language, and the same as JSON. Fixed HTML without a script: what it shows is as old as the request.

import { isoOf, isoOrNull } from '../common/calendar.ts'
import { type Figures, unknown } from '../common/page/figures.js'
import { badge, facts, markup, notice, section, table } from '../common/page/html.ts'
import type { ServiceDay, ServiceStatus } from '../telemetry/service-status.ts'
import { sayIn } from './status-words.ts'

// Never rounded up: a day with one error in a million answers was not without one.
const rounded = (share: number): number => Math.floor(share * 1e5) / 1e5
const secondsOrNull = (ms: number | null): number | null => (ms === null ? null : ms / 1000)

/** The body of /status.json. */
export const statusJson = ({ at, outSince, days, ...weather }: ServiceStatus): string =>
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

/** @param figures in whose language and time zone it is */
export const statusPage = (status: ServiceStatus, figures: Figures): string => {
  const { language, timeZone } = figures
  const { at, outSince, days } = status
  const say = sayIn(language)
  const nowIso = isoOf(at)
  const instant = (ms: number | null): string => figures.instant(isoOrNull(ms), nowIso)
  const percent = (share: number): string => `${figures.plain(rounded(share) * 100)}%`
  const age = (ms: number | null): string =>
    ms === 0 ? say('underMinute') : figures.duration(secondsOrNull(ms))
  const minutes = (count: number | null): string =>
    count === 0 ? say('none') : figures.duration(count === null ? null : count * 60)
  const availabilityOf = ({ availability }: ServiceDay): string => {
    if (availability === null) return unknown
    const state = availability < badBelow ? 'bad' : availability < wellBelow ? 'warn' : 'good'
    return badge(state, percent(availability))
  }
  const outages = (['provider', 'store'] as const).flatMap(kind => {
    const since = outSince[kind]
    return since === null
      ? []
      : [
          notice(
            'bad',
            `<p>${markup(say(kind === 'provider' ? 'providerOut' : 'storeOut', instant(since)))}</p>`,
          ),
        ]
  })
  const fresh =
    status.freshShare === null
      ? markup(say('noDemand'))
      : badge(status.freshShare < badBelow ? 'warn' : 'good', percent(status.freshShare))
  const weather = facts([
    [say('freshShare'), fresh],
    [say('medianAge'), age(status.medianAgeMs)],
    [say('oldestAge'), age(status.oldestAgeMs)],
    [say('run'), instant(status.runAt)],
  ])
  const columns = (['day', 'availability', 'providerMinutes', 'storeMinutes'] as const).map(head => ({
    head: say(head),
  }))
  const rows = days.map(day => [
    markup(figures.day(day.day)),
    availabilityOf(day),
    markup(minutes(day.outageMinutes.provider)),
    markup(minutes(day.outageMinutes.store)),
  ])
  const title = say('title')
  const daysTitle = say('days', figures.count(days.length))
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
${section('now', say('now'), outages.length > 0 ? outages.join('') : notice('good', `<p>${markup(say('allWell'))}</p>`))}
${section('weather', say('weather'), weather)}
${section('days', daysTitle, `${table(daysTitle, columns, rows)}<p class="note">${markup(say('daysNote'))}</p>`)}
</main>
</body>
</html>
`
}
