// `abohawa rehearse`: runs a traffic file against a gateway and a provider on one moved clock, once for each combination of
// settings: a day in minutes.

import { availableParallelism } from 'node:os'
import { stoppedBySignal } from 'abohawa/command-line/interruption.ts'
import { checkTier } from 'abohawa/command-line/key-tier.ts'
import { choiceOption, numberIn } from 'abohawa/command-line/quantities.ts'
import { type AddTopCommand, counted, type Terminal } from 'abohawa/command-line/terminal.ts'
import { forceOption } from 'abohawa/command-line/writable.ts'
import { isoOf } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import pLimit from 'p-limit'
import type { RehearsalParts, RehearsedCase } from '../rehearsal/rehearsed-case.ts'
import type { GivenSettings, SettingCase } from '../setting-grid.ts'
import { checkSpan } from '../traffic/longest-span.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'
import { commandLine, createProgress } from './progress.ts'
import { durationWithin } from './quantities.ts'
import { prepareOutput } from './replay-output.ts'
import { addSettingOptions, casesIn } from './setting-cases.ts'
import { rehearsalText } from './settings-text.ts'
import { type ReadOptions, readFiles } from './traffic-reading.ts'

type Options = GivenSettings &
  Pick<ReadOptions, 'format' | 'host'> & {
    tier?: string
    out?: string
    parallel?: number
    force?: boolean
    step?: number
    providerLimits: 'free' | 'none'
    providerRuns: 'ecmwf' | 'none'
    providerSeed: number
  }

export const addCommand: AddTopCommand = (program, add, summary) =>
  add<Options>(program, 'rehearse', {
    summary,
    example:
      'rehearse samples/weekday.ndjson.gz --set cache.freshness=age,run --set cache.cellDegrees=0.1,0.2 --out rehearsal.html',
    setUp: command =>
      addSettingOptions(command)
        .option('--tier <name>', 'tier of all keys in the file (default: no quota)')
        .option('--out <path>', 'write the report as .html or .json; one file for each of several settings')
        .addOption(forceOption())
        .option(
          '--parallel <number>',
          'settings at the same time (default: half of the cores)',
          numberIn(1, 1_000),
        )
        .option(
          '--step <duration>',
          'send requests within this time together, up to 5s (default: 500ms)',
          step,
        )
        .addOption(
          choiceOption('--provider-limits <kind>', 'limits of Open-Meteo free, or none', ['none', 'free']),
        )
        .addOption(
          choiceOption('--provider-runs <kind>', 'a model run every 6 h, or none', ['ecmwf', 'none']),
        )
        .option('--provider-seed <number>', 'equal seeds give equal weather', numberIn(0, 999_999_999), 1),
    run: async (terminal, options, ...files) => {
      const parallel = options.parallel ?? Math.max(1, Math.floor(availableParallelism() / 2))
      const cases = await casesIn(options, terminal)
      const write = await prepareOutput(terminal, {
        paths: options.out === undefined ? [] : [options.out],
        forms: ['.html', '.json'],
        inputs: files,
        force: options.force,
        results: cases.length,
      })
      if (options.tier !== undefined) checkTier(terminal, options.tier)
      const stopping = stoppedBySignal()
      const parts = await partsOf(terminal, options, files, stopping.signal)
      if (cases.some(({ config }) => config.redis.url !== null))
        terminal.remark('Rehearsed on the embedded store instead of Redis, whose clock can’t be moved.')
      const rehearsed = await rehearseAll(terminal, cases, parts, { parallel, stopping })
      const { sentWith } = parts
      terminal.show({ sentWith, cases: rehearsed }, rehearsalText(rehearsed, sentWith))
      await write(rehearsed.map(({ result }) => result))
      if (!stopping.signal.aborted) return 0
      const whole = rehearsed.filter(({ result }) => !result.interrupted).length
      terminal.remark(
        `Stopped: ${whole} of ${cases.length} rehearsals finished; the figures count only what ran.`,
      )
      return 1
    },
  })

const usualStepMs = 500
const step = durationWithin(0, 5_000, 'a duration up to 5s')

const partsOf = async (
  terminal: Terminal,
  { tier, step: stepMs = usualStepMs, ...options }: Options,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<RehearsalParts> => {
  const { sources, env, clock } = terminal
  const { providerLimits: limits, providerRuns: runs, providerSeed: seed } = options
  const { countSentWith } = await import('../traffic/recorded-admission.ts')
  const reading = await readFiles(terminal, paths, options, signal)
  const requests: TrafficRequest[] = []
  for await (const batch of reading.batches()) for (const request of batch) requests.push(request)
  const { files, sha256, faultyLines } = reading.endWhole()
  requests.sort((one, other) => one.at - other.at)
  const [from = 0, to = 0] = [requests[0]?.at, requests.at(-1)?.at]
  checkSpan(from, to)
  const sentWith = countSentWith(requests)
  if (sentWith.nothing === requests.length)
    throw new InputError(
      `none of the ${counted(requests.length)} requests has a key id or a status, so each would be refused with 401`,
    )
  return {
    requests,
    sentWith,
    traffic: {
      files: files.map(({ file }) => file),
      sha256,
      requests: requests.length,
      keys: new Set(requests.map(({ key }) => key).filter(key => key !== undefined)).size,
      from: isoOf(from),
      spanSeconds: (to - from) / 1000,
      faultyLines,
    },
    command: commandLine(),
    files: sources.files,
    env,
    tier,
    provider: { limits, runs, seed },
    stepMs,
    clock,
    signal,
  }
}

/** In the order of the cases; after an interruption some are missing. */
const rehearseAll = async (
  terminal: Terminal,
  cases: readonly SettingCase[],
  parts: RehearsalParts,
  { parallel, stopping }: { parallel: number; stopping: AbortController },
): Promise<RehearsedCase[]> => {
  const { rehearseCase } = await import('../rehearsal/rehearsed-case.ts')
  const limit = pLimit(parallel)
  const sent = cases.map(() => 0)
  const all = parts.requests.length
  // Created with the first request, so that the start of the gateways is not in the estimate.
  let show: ReturnType<typeof createProgress> | undefined
  const showSent = (): void => {
    show ??= createProgress(terminal)
    const share = sent.reduce((sum, each) => sum + each / all, 0) / cases.length
    show(share, () => {
      const done = sent.filter(each => each === all).length
      return `${done} of ${cases.length} settings, ${Math.floor(share * 100)} % of all requests`
    })
  }
  let failure: unknown
  const rehearsed = await limit.map(cases, async (each, i) => {
    if (stopping.signal.aborted) return undefined
    try {
      return await rehearseCase(each, parts, so => {
        sent[i] = so
        showSent()
      })
    } catch (error) {
      // A signal of the terminal also ends the child processes.
      if (!stopping.signal.aborted) failure = error
      stopping.abort()
      return undefined
    }
  })
  terminal.progress('')
  if (failure !== undefined) throw failure
  return rehearsed.filter(each => each !== undefined)
}
