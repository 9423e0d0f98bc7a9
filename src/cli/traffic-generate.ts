// `abohawa traffic generate`: writes requests that are drawn from a seed, as they come, to standard output or a file. Reads
// the options here; what is drawn is for traffic/generate/.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Calendar, createCalendar } from '../calendar.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { isLocationType, type Location } from '../catalogue/location.ts'
import { parseDuration, printDuration } from '../config/units.ts'
import { InputError, messageOf } from '../errors.ts'
import { printable, quoted } from '../outside-text.ts'
import type { GeneratedTraffic } from '../traffic/generate/generate.ts'
import { type Endpoint, endpoints } from '../traffic/generate/paths.ts'
import { type Shape, shapes } from '../traffic/generate/shape.ts'
import type { Storm } from '../traffic/generate/storm.ts'
import { lineOf } from '../traffic/traffic-request.ts'
import { interruption } from './interruption.ts'
import { type AddCommand, counted, factsText, UsageError } from './terminal.ts'
import { openTrafficOutput } from './traffic-output.ts'

type Options = {
  rate: number
  duration: number
  seed: number
  shape: Shape
  start: string
  storm?: StormOption[]
  stormFactor: number
  mix: Record<Endpoint, number>
  alpha: number
  keys: number
  keysAlpha: number
  english: number
  conditional: number
  compressed: number
  bad: number
  arrivals: 'poisson' | 'even'
  out?: string
}

// A Monday, when none of the places has a holiday.
const defaultStart = '2026-11-16'
const defaultMix = 'weather=70,forecast=20,coords=6,locations=2,location=2'

const mostRequests = 1e9

export const addGenerateCommand = (traffic: Command, add: AddCommand): void =>
  add<Options>(traffic, 'generate', {
    summary: 'generate traffic from a seed: places and keys by Zipf, the hours of a day, a storm',
    example:
      'traffic generate --rate 2000 --duration 10m --seed 7 --shape day --start 2026-11-16T08:00+06:00 --out morning.ndjson.gz',
    setUp: command =>
      void command
        .option('--rate <requests>', 'the mean rate: requests a second, or such as 90/m, 500/h', rateIn, 1)
        .addOption(
          new Option('--duration <duration>', 'how long the traffic lasts, such as 10m')
            .argParser(durationIn)
            .default(86_400_000, '24h'),
        )
        .option('--seed <number>', 'equal seeds give equal bytes', seedIn, 1)
        .addOption(
          new Option(
            '--shape <shape>',
            'how the rate goes: the hours of the local day, level, rising, a spike in the middle, or a day with a storm',
          )
            .choices(shapes)
            .default('day'),
        )
        .option(
          '--start <when>',
          'an instant with its offset, or a day from its local midnight',
          defaultStart,
        )
        .option(
          '--storm <storm>',
          'more requests for a place and all below it, as in district/2015@18:00/2h; may be given again',
          stormIn,
        )
        .option('--storm-factor <number>', 'how many times the usual requests at its height', factorIn, 8)
        .addOption(
          new Option('--mix <shares>', 'how often each endpoint is requested beside the others')
            .argParser(mixIn)
            .default(mixIn(defaultMix), defaultMix),
        )
        .option('--alpha <number>', 'skew of places: the exponent of Zipf, by population', alphaIn, 1)
        .option('--keys <number>', 'so many keys, key-0001 and on', keysIn, 1000)
        .option('--keys-alpha <number>', 'skew of keys', alphaIn, 0.8)
        .option(
          '--english <share>',
          'of requests with names in English; the others have Bengali ones',
          shareIn,
          0.3,
        )
        .option('--conditional <share>', 'of requests for what has changed alone', shareIn, 0.1)
        .option('--compressed <share>', 'of requests that take gzip, every other one br too', shareIn, 0.75)
        .option(
          '--bad <share>',
          'of requests that are refused: unknown places, bad parameters, no key',
          shareIn,
          0.01,
        )
        .addOption(
          new Option('--arrivals <kind>', 'poisson: independent of each other; even: with equal gaps')
            .choices(['poisson', 'even'])
            .default('poisson'),
        )
        .option('--out <path>', 'write to a new file, with gzip where the name ends in .gz'),
    run: async (terminal, options) => {
      const { rate, duration, out } = options
      const expected = (rate * duration) / 1000
      if (expected > mostRequests)
        throw new UsageError(
          `--rate and --duration make ${counted(Math.round(expected))} requests; allowed: up to ${counted(mostRequests)}`,
        )
      const config = terminal.config()
      // Imported here, so that the other commands start without them.
      const { createCatalogue } = await import('../catalogue/catalogue.ts')
      const { catalogueFile } = await import('../catalogue/catalogue-file.ts')
      const { readSnapshot } = await import('../catalogue/snapshot-reader.ts')
      const { generate } = await import('../traffic/generate/generate.ts')
      const { path, bounds } = config.catalogue
      const catalogue = createCatalogue(await readSnapshot(catalogueFile(path), bounds))
      if (catalogue.size === 0) throw new InputError('the catalogue has no published place')
      const calendar = createCalendar(config.quota.timeZone)
      const settings = settingsOf(options, catalogue, calendar)

      let isStopped = false
      void interruption().then(() => {
        isStopped = true
      })
      const began = performance.now()
      const output = await openTrafficOutput(terminal, out)
      let [requests, chunk, shownAt] = [0, '', began]
      const world = { catalogue, bounds, offsetSecondsAt: calendar.offsetSecondsAt }
      for (const request of generate(settings, world)) {
        chunk += `${lineOf(request)}\n`
        requests += 1
        if (chunk.length < chunkLength) continue
        await output.write(chunk)
        chunk = ''
        const now = performance.now()
        if (now - shownAt > 200) {
          shownAt = now
          const left = ((now - began) / 1000) * (expected / requests - 1)
          terminal.progress(
            `${counted(requests)} of about ${counted(Math.round(expected))} requests, ${counted(Math.round(requests / ((now - began) / 1000)))} a second, ${Math.max(0, Math.round(left))} s left`,
          )
        }
        if (isStopped) break
      }
      await output.write(chunk)
      await output.end()
      terminal.progress('')
      const seconds = (performance.now() - began) / 1000
      if (isStopped)
        throw new InputError(
          `the command was interrupted; ${out === undefined ? 'the output' : quoted(out, 200)} has the first ${counted(requests)} requests`,
        )
      if (out !== undefined)
        terminal.show(
          shownOf(out, requests, settings, catalogue),
          textOf(out, requests, seconds, settings, calendar),
        )
      return 0
    },
  })

const chunkLength = 65_536

const shownOf = (
  out: string,
  requests: number,
  { start, durationMs, storms, ...settings }: GeneratedTraffic,
  catalogue: Catalogue,
) => ({
  out,
  requests,
  from: new Date(start).toISOString(),
  seconds: durationMs / 1000,
  ...settings,
  storms: storms.map(({ place, from, to, factor }) => ({
    place: `${place.type}/${place.id}`,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    factor,
  })),
  catalogue: catalogue.checksum,
})

const textOf = (
  out: string,
  requests: number,
  seconds: number,
  { start, durationMs, storms, shape, seed, keys }: GeneratedTraffic,
  calendar: Calendar,
): string => {
  const local = (instant: number) => calendar.localMinute(instant).replace('T', ' ')
  return [
    `${printable(out)} has ${counted(requests)} requests.`,
    factsText([
      ['from', `${local(start)}, for ${printDuration(durationMs)} (${calendar.zone})`],
      ['shape', `${shape}, seed ${seed}`],
      ...storms.map(({ place, from, to, factor }): [string, string] => [
        'storm',
        `${place.name_en} (${place.type} ${place.id}), ${local(from)} to ${local(to).slice(11)}, ${factor} times the requests`,
      ]),
      ['keys', `${counted(keys)}; \`abohawa traffic keys\` lists them for \`abohawa keys create --from\``],
      ['took', `${seconds.toFixed(1)} s, ${counted(Math.round(requests / seconds))} requests a second`],
    ]),
  ].join('\n')
}

const settingsOf = (options: Options, catalogue: Catalogue, calendar: Calendar): GeneratedTraffic => {
  const { duration, start: given, storm, shape, stormFactor, ...rest } = options
  const start = startIn(given, calendar)
  const storms = (storm ?? []).map(each =>
    placed(each, { start, duration, stormFactor }, catalogue, calendar),
  )
  if (shape === 'storm' && storms.length === 0)
    storms.push(defaultStorm(start, duration, stormFactor, catalogue))
  if (endpoints.every(endpoint => rest.mix[endpoint] === 0))
    throw new UsageError('--mix has no share above 0')
  return { ...rest, shape, start, durationMs: duration, storms }
}

/** The second most populous district, from three quarters of the time for a twelfth of it: 18:00 to 20:00 of a day. */
const defaultStorm = (start: number, duration: number, factor: number, catalogue: Catalogue): Storm => {
  const { results } = catalogue.list({ type: 'district', limit: 2, offset: 0 })
  const place = results[1] ?? results[0] ?? (catalogue.all()[0] as Location)
  const from = start + (duration * 3) / 4
  return { place, from, to: from + duration / 12, factor }
}

type StormOption = { given: string; type: string; id: string; minute: number; durationMs: number }

const stormIn = (given: string, before: StormOption[] = []): StormOption[] => {
  const [, type = '', id = '', hour, minute, lasting = ''] =
    /^([a-z]+)\/(\d+)@([01]\d|2[0-3]):([0-5]\d)\/([\d.]+[a-z]+)$/.exec(given) ?? []
  if (!isLocationType(type))
    throw new InvalidArgumentError(
      'Allowed: a place type/id, a local time and a duration, as in district/2015@18:00/2h.',
    )
  return [
    ...before,
    { given, type, id, minute: Number(hour) * 60 + Number(minute), durationMs: durationIn(lasting) },
  ]
}

/** The storm at its local time in the span, the first time that comes. */
const placed = (
  { given, type, id, minute, durationMs }: StormOption,
  { start, duration, stormFactor }: { start: number; duration: number; stormFactor: number },
  catalogue: Catalogue,
  calendar: Calendar,
): Storm => {
  const place = isLocationType(type) ? catalogue.find(type, id) : undefined
  if (!place) throw new UsageError(`--storm is ${quoted(given)}, and there is no ${type} ${quoted(id)}`)
  let from = midnightOf(calendar.dayOf(start), calendar) + minute * 60_000
  if (from < start) from = midnightOf(calendar.dayOf(from + 86_400_000), calendar) + minute * 60_000
  if (from >= start + duration)
    throw new UsageError(
      `--storm is ${quoted(given)}, which begins after the traffic ends at ${calendar.localMinute(start + duration).replace('T', ' ')} local time`,
    )
  return { place, from, to: from + durationMs, factor: stormFactor }
}

const midnightOf = (day: string, calendar: Calendar): number => {
  const utc = Date.parse(`${day}T00:00Z`)
  return utc - calendar.offsetSecondsAt(utc) * 1000
}

const startIn = (given: string, calendar: Calendar): number => {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(given)
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(given)
  const start = isDay ? midnightOf(given, calendar) : isInstant ? Date.parse(given) : Number.NaN
  if (Number.isNaN(start) || start < 0)
    throw new UsageError(
      `--start is ${quoted(given)}; allowed: a day such as 2026-11-16, or an instant such as 2026-11-16T08:00+06:00`,
    )
  return start
}

const numberIn =
  (least: number, most: number, form: RegExp, allowed: string) =>
  (given: string): number => {
    const number = form.test(given) ? Number(given) : Number.NaN
    if (!(number >= least && number <= most)) throw new InvalidArgumentError(`Allowed: ${allowed}.`)
    return number
  }

const decimal = /^\d{1,12}(\.\d{1,9})?$/
const whole = /^\d{1,10}$/
const shareIn = numberIn(0, 1, decimal, 'a share from 0 to 1, such as 0.1')
const alphaIn = numberIn(0, 5, decimal, 'a number from 0 (all alike) to 5')
const factorIn = numberIn(1, 1000, decimal, 'a number from 1 to 1000')
const keysIn = numberIn(1, 100_000, whole, 'a whole number from 1 to 100000')
const seedIn = numberIn(0, 4_294_967_295, whole, 'a whole number from 0 to 4294967295')

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

const rateIn = (given: string): number => {
  const [, number = '', unit = 's'] = /^(\d{1,12}(?:\.\d{1,9})?)(?:\/1?([smhd]))?$/.exec(given) ?? []
  const rate = Number(number) / (unitSeconds[unit] as number)
  if (!(rate > 0 && rate <= 1e6))
    throw new InvalidArgumentError(
      'Allowed: requests a second, up to 1000000, or such as 90/m, 500/h, 10000/d.',
    )
  return rate
}

const durationIn = (given: string): number => {
  let ms: number
  try {
    ms = parseDuration(given)
  } catch (error) {
    throw new InvalidArgumentError(`${messageOf(error)}.`)
  }
  if (ms < 1 || ms > 366 * 86_400_000)
    throw new InvalidArgumentError('Allowed: 1ms to 366d, with a unit (ms, s, m, h, d).')
  return ms
}

const mixIn = (given: string): Record<Endpoint, number> => {
  const mix = Object.fromEntries(endpoints.map(endpoint => [endpoint, 0])) as Record<Endpoint, number>
  for (const part of given.split(',')) {
    const [, name = '', share] = /^([a-z]+)=(\d{1,9}(?:\.\d{1,9})?)$/.exec(part.trim()) ?? []
    if (share === undefined || !Object.hasOwn(mix, name))
      throw new InvalidArgumentError(`Allowed: shares of ${endpoints.join(', ')}, as in ${defaultMix}.`)
    mix[name as Endpoint] = Number(share)
  }
  return mix
}
