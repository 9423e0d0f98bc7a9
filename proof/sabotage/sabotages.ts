// Faults that are planted in the product, one at a time, to see whether the checker finds them. Each row: what the fault is, the
// promises of which it breaks at least one, and its file; then the text (-) that is replaced (+), which may begin and end
// within a line.

import type { PromiseNumber } from '../promises.ts'

export type Sabotage = {
  readonly name: string
  readonly file: string
  readonly text: string
  readonly replacement: string
  readonly promise: readonly PromiseNumber[]
}

const table = `
a fallback is never asked [18] src/provider/failover.ts
  - failed.push({ name: upstream.name, error })
  + if (failed.push({ name: upstream.name, error }) > 0) break
entries are said to be those of the first upstream [18] src/cache/upstream.ts
  - return entryOf(key, timeline, metadata, weather.hourlyHours, name)
  + return entryOf(key, timeline, metadata, weather.hourlyHours, accounts.all[0]?.name)
a hard purge is lost [15] src/cache/purges.ts
  - purges.add(purge)
  + if (purge.kind === 'soft') purges.add(purge)
a holder that lost its lease may still write [14] src/stores/redis/bytes.ts
  - if (holder !== undefined) return (await write(names.lease(name), key, holder, bytes, expiresAt)) === 1
all bodies have one tag [5] src/api/representation.ts
  - hash('sha256', bytes, 'base64url').slice(0, tagLength)
  + 'A'.repeat(tagLength)
a revoked key is accepted [10] src/keys/authentication.ts
  - if (found.key.revokedAt !== null) return { refusal: 'key-revoked', keyId }
the hours begin an hour early [4] src/api/answer.ts
  - text.hourly(timeline, readAt, hourlyHours)
  + text.hourly(timeline, readAt - 3_600_000, hourlyHours)
a limit is a request higher [2 6 7 11] src/keys/authentication.ts
  -         limit,
  -         isTest:
  +         limit: limit + 1,
  +         isTest:
the budget grants whatever is wanted [12] src/stores/redis/spending.ts
  - grant = math.min(grant, math.max(0, floor(room / unit) * unit))
the quota ends at midnight UTC [9] src/keys/meter.ts
  - return this.#windowAt(instant).endsAt
  + return (Math.floor(instant / 86_400_000) + 1) * 86_400_000
the weather of the cell to the north [3] src/api/answer.ts
  - grid.cellOf(latitude, longitude)
  + grid.cellOf(latitude + 0.25, longitude)
each gateway takes all that is left as its allowance [6] src/keys/local-allowance.ts
  - Math.floor((limit - lastKnown - 2 * stepOf(limit)) / instances)
  + limit - lastKnown + instances * 0
a batch is counted twice [7 8] src/stores/redis/usage-scripts.ts
  - used = used + granted
  + used = used + granted + granted
what Redis lost is not counted again [6 8] src/stores/redis/usage-scripts.ts
  - local used = before + admitted - mine
  + local used = before + (value and admitted - mine or 0)
units admitted in an outage are reported as nothing [6 8] src/keys/local-allowance.ts
  - count.admitted += units
  -       callback(undefined, { allowed: true, remaining: left - units })
  +       callback(undefined, { allowed: true, remaining: left - units })
  + 
remaining is the count before the request [7 8] src/keys/partition.ts
  - callback(undefined, { allowed: true, remaining: left })
  + callback(undefined, { allowed: true, remaining: left + unitsEach })
every tag matches [5] src/api/representation.ts
  - ifNoneMatch !== undefined && matches(ifNoneMatch, tag)
  + ifNoneMatch !== undefined && (matches(ifNoneMatch, tag) || true)
stale weather is served as long as its timeline lasts [3] src/cache/freshness.ts
  - Math.min(freshUntil(entry, now) + options.staleForMs, entry.fetchedAt + longest, endOf(entry))
  + freshUntil(entry, now) + 48 * 3_600_000
weather says that it was fetched at the request [3] src/api/rendered-weather.ts
  - Math.min(fetchedAt, readAt)
  + readAt
the circuit stays open [13] src/provider/breaker.ts
  - halfOpenAt = now + waitMs
  + halfOpenAt = now + waitMs * 1e6
the points of a batch are mixed up [3 13] src/provider/open-meteo/request.ts
  - cells.map(cell => cell.longitude)
  + cells.toReversed().map(cell => cell.longitude)
a minute of the budget has half a minute [12] src/provider/spending-windows.ts
  - minute: minuteMs, hour
  + minute: minuteMs / 2, hour
what was spent is given back [12] src/provider/charge.ts
  - by: costIn(window) - weight }
  + by: -weight }
changes of keys are not taken over [10 11] src/keys/key-directory.ts
  - expire(copiesById.of(id))
  + expire([])
midnight comes by the clock of each gateway [9] src/common/clock.ts
  - offsetMs = agrees ? 0 : Math.round(otherTime - (sentAt + received.wall) / 2)
  + offsetMs = agrees ? 0 : 0
places keep the names of the previous catalogue [16] src/api/weather-endpoints.ts
  - if (from !== catalogue.current) {
  + if (!from) {
a renewed certificate is not served [16] src/api/server.ts
  - ;(server as TlsServer).setSecureContext(next)
an empty bucket grants all the same [17] src/keys/partition.ts
  - inTime-- <= 0
  + inTime-- > 1e9
with \`refuse\` nobody looks whether Redis lost counts [6 7 8] src/keys/reconciliation.ts
  - this.#onLoss()
  -     // Requests may wait for it.
  + if (whenStoreIsDown === 'share') this.#onLoss()
a forecast has a day less than asked [2] src/api/answer.ts
  - text.daily(timeline, readAt, days)
  + text.daily(timeline, readAt, days - 1)
the hours end an hour early [2] src/api/answer.ts
  - text.hourly(timeline, readAt, hourlyHours)
  + text.hourly(timeline, readAt, hourlyHours - 1)
an expired key is accepted [10] src/keys/authentication.ts
  - if (hasPassed(found.key.expiresAt))
  + if ((found.key.expiresAt ?? 0) < 0)
a replaced secret stays valid [10] src/keys/authentication.ts
  - if (hasPassed(found.validUntil)) return { refusal: 'replaced', keyId }
a secret that is replaced at once works on where a clock is behind [10] src/keys/administration.ts
  - overlapMs === 0 ? until - clockToleranceMs : until
  + until
a secret that is being replaced ends at once [11] src/keys/authentication.ts
  - if (hasPassed(found.validUntil))
  + if (found.validUntil !== null)
weather says that it stays right beyond its quarter-hour [4] src/api/rendered-weather.ts
  - secondsBetween(readAt, Math.min(endsAt, freshUntil))
  + secondsBetween(readAt, freshUntil)
weather says that it stays right although it is stale [4] src/api/rendered-weather.ts
  - Math.min(endsAt, freshUntil)
  + endsAt
a used-up quota says to come back in a second [2] src/api/refusals.ts
  - String(Math.max(1, Math.ceil((resetsAt - now) / 1000)))
  + String(Math.max(1, Math.min(1, resetsAt - now)))
a list leads to no later page [2] src/api/location-endpoints.ts
  - offset + limit < total ?
  + offset + limit < 0 ?
a list begins with the fewest people [2] src/catalogue/catalogue.ts
  - b.population - a.population
  + a.population - b.population
a page of a list has a place too many [2] src/api/location-endpoints.ts
  - catalogue.list({ type, parentId, q, limit, offset })
  + catalogue.list({ type, parentId, q, limit: limit + 1, offset })
a wrong method is not told which are right [2] src/api/refusals.ts
  - sentences.http.method(methodOf(request)), methods
  + sentences.http.method(methodOf(request)), {}
errors may be kept by caches [2] src/api/problem.ts
  - cache-control: no-store
  + cache-control: private, max-age=60
a list of places takes the units that are left [7 8] src/stores/redis/usage-scripts.ts
  - if fitting > 0 then granted = granted + fitting * unitsEach end
  + granted = math.min(left, granted + requests * unitsEach)
a list of places costs a place less [7 8 19] src/api/place-list.ts
  - return listQueries[name](query).places.length
  + return Math.max(1, listQueries[name](query).places.length - 1)
a list of places has the first one twice [2 19] src/api/joined-weather.ts
  - const items = all.map(found => itemOf(found, readAt, days))
  + const items = [...all.slice(0, 1), ...all.slice(0, -1)].map(found => itemOf(found, readAt, days))
HEAD takes no unit [7 8] src/api/admission.ts
  - const units = isFree ? 0
  + const units = isFree || request.method === 'HEAD' ? 0
a place twice in a list costs twice [2 7 8 19] src/api/parameters.ts
  - const distinctIn = (list: string): string[] => [...new Set(valuesIn(list))]
  + const distinctIn = (list: string): string[] => valuesIn(list)
the total of a list is one too many [2] src/api/response-bodies.ts
  -   }),
  -   total,
  +   }),
  +   total: total + 1,
weather says that it was fetched an hour before [3] src/api/rendered-weather.ts
  - Math.min(fetchedAt, readAt)
  + Math.min(fetchedAt, readAt) - 3_600_000
the days begin at the UTC day [4] src/weather/timeline-text.ts
  - dayNumber(calendar.dayOf(now))
  + dayNumber(new Date(now).toISOString().slice(0, 10))
stale weather is called a hit that is fresh [3 4] src/api/rendered-weather.ts
  - return \`\${forwarded ? \`fwd=stale\${shared}\` : 'hit'}; \${ttl}; detail
  + return \`hit; ttl=\${Math.abs(ttlSeconds)}; detail
a 304 names no tag [2] src/api/representation.ts
  - ? headOf(304, lines)
  + ? headOf(304, lines.replace(/etag: .*\\r\\n/, ''))
a point is rounded in its location [2] src/api/response-bodies.ts
  - return { type: 'coords', latitude, longitude,
  + return { type: 'coords', latitude: Number(latitude.toFixed(1)), longitude,
the reset is an hour late [9] src/keys/meter.ts
  - return this.#windowAt(instant).endsAt
  + return this.#windowAt(instant).endsAt + 3_600_000
each day of the status page has an hour of outage [2] src/telemetry/service-days.ts
  - return Math.ceil(ms / minuteMs)
  + return Math.ceil(ms / minuteMs) + 60
the quota begins again two seconds later [2] src/api/representation.ts
  - const seconds = Math.ceil((resetsAt - arrivedAt) / 1000)
  + const seconds = Math.ceil((resetsAt - arrivedAt) / 1000) + 2
a used-up quota says to come back an hour late [2] src/api/refusals.ts
  - String(Math.max(1, Math.ceil((resetsAt - now) / 1000)))
  + String(Math.max(1, Math.ceil((resetsAt - now) / 1000) + 3_600))
a limit by the second says to come back a minute late [2] src/api/refusals.ts
  - reset_at: isoOf(now + Math.ceil(waitMs))
  + reset_at: isoOf(now + Math.ceil(waitMs) + 60_000)
an unknown key has a limit [2] src/api/representation.ts
  - limitLinesOf(client?.limit ?? 0,
  + limitLinesOf(client?.limit ?? 9,
the status page has a cell too many [2] src/telemetry/service-status.ts
  - (({ state }) => state === 'fresh').length / cells.length
  + (({ state }) => state === 'fresh').length / (cells.length + 1)
the status page has weather older than it is [2] src/telemetry/service-status.ts
  - Math.max(0, now - fetchedAt)
  + Math.max(0, now - fetchedAt) + 18_000_000
the status page says when the model's run came out [2] src/telemetry/service-status.ts
  - run()?.initialisedAt ?? null
  + run()?.availableAt ?? null
a day has a failure more [2] src/telemetry/service-days.ts
  - (all - Math.min(errors, all)) / all
  + (all - Math.min(errors + 1, all)) / all
an outage began an hour before [2] src/api/status-page.ts
  - since: isoOf(outSince.provider)
  + since: isoOf(outSince.provider - 3_600_000)
a slug leads to an id without its first digit [2] src/api/representation.ts
  - content-location: \${path}
  + content-location: \${path.slice(1)}
the night has the icon of the day [2] src/weather/weather-words.ts
  - isDay === 0 ? 'night'
  + isDay === 2 ? 'night'
a place near a point is a farther one [2] src/catalogue/nearest.ts
  - squared < best.squared ||
  + squared > best.squared ||
a key is told that it used a unit less [2] src/api/key-endpoint.ts
  - remaining > 0 ? limit - remaining
  + remaining > 0 ? limit - remaining - 1
the limit by the second is told twice as high [2] src/api/rate-figures.ts
  - ;q=\${limit};w=
  + ;q=\${2 * limit};w=
names are always English [2] src/api/response-bodies.ts
  - (lang === 'en' ? name_en : name_bn)
  + (lang === 'en' ? name_en : name_en)
a second look at a load in memory is called one at Redis [3] src/api/rendered-weather.ts
  - ; detail=\${source}
  + ; detail=\${source === 'memory' ? 'redis' : source}
the end of a load is a minute later in every other second [3] src/api/rendered-weather.ts
  - ttl: Math.floor((freshUntil - readAt) / 1000)
  + ttl: Math.floor((freshUntil - readAt) / 1000) + (Math.floor(readAt / 1000) % 2) * 60
the instant of a load is five seconds earlier in every other second [3] src/api/rendered-weather.ts
  - Math.min(fetchedAt, readAt)
  + Math.min(fetchedAt, readAt) - (Math.floor(readAt / 1000) % 2) * 5000
a load that missed is called a hit [3] src/api/rendered-weather.ts
  - return \`fwd=miss\${shared}; stored; \${ttl}\${from}\`
  + return \`hit; \${ttl}; detail=memory\${from}\`
a failed load says to come back a minute later [2] src/api/problem.ts
  - { 'retry-after': String(seconds) }
  + { 'retry-after': String(seconds + 60) }
the status page hides an outage of weather [2] src/api/status-page.ts
  - ...(outSince.provider === null ?
  + ...(outSince.provider !== undefined ?
an outage of weather is over for whoever looks [2] src/telemetry/outages.ts
  - if (on && isQuiet(on.failedAt, clock.now()) && room() !== 'none') endProvider()
  + if (on) endProvider()
a bound key is told other endpoints than its own [2] src/api/refusals.ts
  - sentences.bound.endpoint(given.endpoint, endpoints ?? [])
  + sentences.bound.endpoint(given.endpoint, ['forecast'])
a tag that was sent along is not recognized in its weak form [5] src/api/representation.ts
  - includes(\`"\${tag}"\`)
  + includes(\`w"\${tag}"\`)
a soft purge changes nothing [2 3] src/cache/read-through.ts
  - freshUntil: outcome === 'stale' ? Math.min(freshUntil, now) : freshUntil
  + freshUntil
stale weather that is being refreshed is called a hit [2] src/api/rendered-weather.ts
  - fwd=stale
  + hit
a key is told that its day is used up when its allowance is [7] src/keys/local-allowance.ts
  - known && known.used > count.limit - units
  + known && known.used > -units
a refusal at an endpoint tells of nine units less [7] src/api/admission.ts
  - observe(client, refusal)
  + state.remaining = Math.max(0, state.remaining - 9)
`

const linesOf = (row: string, sign: '-' | '+'): string =>
  [...row.matchAll(/^ {2}([-+]) (.*)$/gm)].flatMap(([, of, line]) => (of === sign ? [line] : [])).join('\n')

export const sabotages: readonly Sabotage[] = table.split(/\n(?=\S)/).flatMap(row => {
  const [, name = '', numbers = '', file = ''] = /^(.*) \[(.*)\] (\S+)/.exec(row) ?? []
  const promise = numbers.split(' ').map(Number) as PromiseNumber[]
  return name === '' ? [] : [{ name, file, promise, text: linesOf(row, '-'), replacement: linesOf(row, '+') }]
})
