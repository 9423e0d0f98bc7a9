// `abohawa traffic generate`: writes requests drawn from a seed, to standard output or a file.

import { setImmediate as turn } from 'node:timers/promises'
import { readCatalogue } from 'abohawa/catalogue/live-catalogue.ts'
import { interruption } from 'abohawa/command-line/interruption.ts'
import { choiceOption } from 'abohawa/command-line/quantities.ts'
import { factsText } from 'abohawa/command-line/tables.ts'
import { type AddCommand, counted, numbered, type Terminal } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { checkOutputs, forceOption, outputsOf } from 'abohawa/command-line/writable.ts'
import { type Calendar, createCalendar, isoOf, utcDayMs } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { standardOutput } from 'abohawa/common/file-bytes.ts'
import { printable } from 'abohawa/common/outside-text.ts'
import { printDuration } from 'abohawa/config/units.ts'
import type { Command } from 'commander'
import { shapes } from '../traffic/generate/arrivals.ts'
import { type GeneratedTraffic, generate } from '../traffic/generate/generate.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'
import { textOf, writeText } from '../traffic/write-traffic.ts'
import {
  alphaIn,
  defaultMix,
  factorIn,
  type GenerateOptions,
  keysIn,
  localText,
  mixIn,
  seedIn,
  settingsOf,
  shareIn,
  spanIn,
  stormIn,
} from './generate-options.ts'
import { createProgress } from './progress.ts'
import { rateIn } from './quantities.ts'
import { outOption } from './traffic-options.ts'

// A Monday: the weekend is Friday and Saturday.
const defaultStart = '2026-11-16'
const maxRequests = 1e9

type Options = Omit<GenerateOptions, 'duration' | 'mix'> &
  Partial<Pick<GenerateOptions, 'duration' | 'mix'>> & { out: string; force?: boolean }

export const addGenerateCommand = (traffic: Command, add: AddCommand): Command =>
  add<Options>(traffic, 'generate', {
    summary: 'generate traffic from a seed: Zipf places and keys, hours of a day, a storm',
    example:
      'traffic generate --rate 2000 --duration 10m --seed 7 --shape day --out ten-minutes.ndjson.gz\n  npm run -s abohawa -- traffic generate --shape storm --storm district/2022@18:00/2h --out storm.ndjson',
    setUp: command =>
      void command
        .option('--rate <requests>', 'mean requests per second, or such as 90/m, 500/h', rateIn, 1)
        .option('--duration <duration>', 'length of the traffic, such as 10m (default: 24h)', spanIn)
        .option('--seed <number>', 'equal seeds give equal bytes', seedIn, 1)
        .addOption(choiceOption('--shape <shape>', 'request rate over time', [...shapes, 'storm']))
        .option('--start <when>', 'a day, or an instant such as 2026-11-16T08:00+06:00', defaultStart)
        .option(
          '--storm <storm>',
          'more requests around a place: type/id, local time and duration, such as district/2015@18:00/2h (repeatable)',
          stormIn,
        )
        .option('--storm-factor <number>', 'times the usual requests in a storm', factorIn, 10)
        .option('--mix <shares>', `share of each endpoint (default: ${defaultMix})`, mixIn)
        .option('--alpha <number>', 'skew of places: Zipf exponent, by population', alphaIn, 1)
        .option('--keys <number>', 'number of keys, from key-0001 on', keysIn, 1000)
        .option('--keys-alpha <number>', 'skew of keys: Zipf exponent', alphaIn, 0.8)
        .option('--english <share>', 'share with English instead of Bengali names', shareIn, 0.3)
        .option('--conditional <share>', 'share sent with if-none-match', shareIn, 0.1)
        .option('--compressed <share>', 'share that accepts gzip; half of it also accepts br', shareIn, 0.75)
        .option(
          '--bad <share>',
          'share that is refused: unknown places, bad parameters, no key',
          shareIn,
          0.01,
        )
        .addOption(choiceOption('--arrivals <kind>', 'random or even gaps', ['poisson', 'even']))
        .addOption(outOption())
        .addOption(forceOption()),
    run: generateTraffic,
  })

const generateTraffic = async (
  terminal: Terminal,
  { out, force = false, duration = utcDayMs, mix = mixIn(defaultMix), ...given }: Options,
): Promise<number> => {
  const options = { ...given, duration, mix }
  const expected = Math.round((options.rate * options.duration) / 1000)
  if (expected > maxRequests)
    throw new UsageError(
      `--rate and --duration give ${counted(expected)} requests, but the maximum is ${counted(maxRequests)}`,
    )
  const config = terminal.config()
  if (out !== standardOutput) await checkOutputs(terminal, outputsOf('--out', out), { inputs: [], force })
  const calendar = createCalendar(config.quota.timeZone)
  const catalogue = await readCatalogue(config.catalogue.path)
  const { bounds } = catalogue
  if (catalogue.size === 0) throw new InputError('the catalogue has no published places')
  const settings = settingsOf(options, catalogue, calendar)
  const requests = generate(settings, { catalogue, bounds, offsetSecondsAt: calendar.offsetSecondsAt })

  const progress: Progress = { requests: 0, expected, began: performance.now(), isStopped: false }
  void interruption().then(() => {
    progress.isStopped = true
  })
  await writeText(out, textOf(observed(requests, progress, terminal)), { force })
  terminal.progress('')
  const file = out === standardOutput ? 'standard output' : printable(out)
  if (progress.isStopped) {
    terminal.remark(`Interrupted: ${file} has the first ${counted(progress.requests)} requests.`)
    return 1
  }
  if (out !== standardOutput)
    terminal.show(
      { out, requests: progress.requests, catalogue: catalogue.checksum, ...shownOf(settings) },
      `${file} has ${numbered(progress.requests, 'request', 'requests')}.\n${textOfSettings(settings, progress, calendar)}`,
    )
  return 0
}

const batchSize = 512

type Progress = { requests: number; readonly expected: number; readonly began: number; isStopped: boolean }

const secondsSince = (began: number): number => (performance.now() - began) / 1000

async function* observed(
  requests: Iterable<TrafficRequest>,
  progress: Progress,
  terminal: Terminal,
): AsyncGenerator<TrafficRequest[]> {
  let batch: TrafficRequest[] = []
  const show = createProgress(terminal)
  for (const request of requests) {
    batch.push(request)
    if (batch.length < batchSize) continue
    progress.requests += batch.length
    yield batch
    batch = []
    // A pipe and /dev/null never make the stream wait, so signals would not be handled.
    await turn()
    if (progress.isStopped) return
    const { requests: made, expected, began } = progress
    show(made / expected, () => {
      const rate = counted(Math.round(made / secondsSince(began)))
      return `${counted(made)} of about ${counted(expected)} requests, ${rate} a second`
    })
  }
  progress.requests += batch.length
  yield batch
}

const shownOf = ({ start, durationMs, storms, ...settings }: GeneratedTraffic) => ({
  from: isoOf(start),
  seconds: durationMs / 1000,
  ...settings,
  storms: storms.map(({ place, from, to, factor }) => ({
    place: `${place.type}/${place.id}`,
    from: isoOf(from),
    to: isoOf(to),
    factor,
  })),
})

const textOfSettings = (
  { start, durationMs, storms, shape, seed, keys }: GeneratedTraffic,
  { requests, began }: Progress,
  calendar: Calendar,
): string => {
  const seconds = secondsSince(began)
  return factsText([
    ['from', `${localText(start, calendar)} ${calendar.zone}, for ${printDuration(durationMs)}`],
    ['shape', `${shape}, seed ${seed}`],
    ...storms.map(({ place, from, to, factor }): [string, string] => [
      'storm',
      `${place.name_en} (${place.type}/${place.id}) from ${localText(from, calendar)} to ${localText(to, calendar)}, ${factor} times the requests`,
    ]),
    [
      'keys',
      `${counted(keys)}; \`abohawa traffic import --as keys\` lists them for \`abohawa keys create --from\``,
    ],
    ['took', `${seconds.toFixed(1)} s, ${counted(Math.round(requests / seconds))} requests a second`],
  ])
}
