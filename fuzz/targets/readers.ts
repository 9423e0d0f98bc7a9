// Target: the functions that read what comes from outside, called in this process, by the thousand in a second: bodies of the
// provider, catalogues, configurations, traffic files and results. Each ends soon, with a value or with an error that was
// meant for people. What a gateway makes of them is for the other targets.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspectSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { InputError } from '../../src/common/errors.ts'
import { readConfig } from '../../src/config/load.ts'
import { readResults } from '../../src/load/report/read-results.ts'
import { readTraffic } from '../../src/load/traffic/read-traffic.ts'
import { ProviderError } from '../../src/provider/errors.ts'
import { decodeTimelines } from '../../src/provider/open-meteo/decode.ts'
import { pathFor } from '../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { horizonFor } from '../../src/weather/horizon.ts'
import { smallCatalogue } from '../../test/support/usual-catalogue.ts'
import { cut, type Finding, finding, slowness } from '../finding.ts'
import { createRandom, type Random } from '../random.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { type Change, changed, changeKinds, changeText, makeChange } from './body-mutations.ts'
import { makeConfigText } from './config-texts.ts'
import { mutatedReport } from './report-mutations.ts'
import { formats, mutated, seeds } from './traffic.ts'

type ReaderCase = {
  readonly reader: Reader
  /** Of a body of the provider. */
  readonly changes: readonly Change[]
  /** Of a body of the provider, or of a catalogue: made from a right one when it is read. Of all others the text itself. */
  readonly text: string | Buffer | undefined
  /** What a catalogue is changed by. */
  readonly seed: number
}

type Reader = 'provider' | 'catalogue' | 'configuration' | 'traffic' | 'result'
/** What comes over the network comes most often; a configuration or a result takes as long as twenty bodies or more. */
const drawn: readonly Reader[] = [
  ...Array<Reader>(230).fill('provider'),
  ...Array<Reader>(84).fill('catalogue'),
  ...Array<Reader>(84).fill('traffic'),
  'configuration',
  'result',
]

// Of processor time: far more than the slowest of them needs, a configuration of 300,000 lines.
const endsWithinMs = 3_000
// A configuration may have 101 sentences.
const longestError = 101 * 1_000

const generate = (random: Random): ReaderCase => {
  const reader = random.pick(drawn)
  const kinds = Array.from({ length: random.between(1, 3) }, () => random.pick(changeKinds))
  const changes = reader === 'provider' ? kinds.map(kind => makeChange(random, kind)) : []
  return { reader, changes, text: textOf(reader, random), seed: random.between(0, 2 ** 31) }
}

const textOf = (reader: Reader, random: Random): string | Buffer | undefined => {
  if (reader === 'configuration') return makeConfigText(random).bytes
  if (reader === 'result') return mutatedReport(random, seeds.report)
  return reader === 'traffic' ? mutated(random, seeds[random.pick(formats)]) : undefined
}

/** Some divisions of it, so that a change hits something. */
const smallText = async (): Promise<string> => {
  const text = await readFile(await smallCatalogue(), 'utf8')
  const [head = '', ...lines] = text.split('\n    {"id":')
  return [head, ...lines.slice(0, 8)].join('\n    {"id":')
}

const open = async (system: System): Promise<Session<ReaderCase>> => {
  const folder = mkdtempSync(join(tmpdir(), 'abohawa-readers-'))
  const file = join(folder, 'given')
  const calendar = createCalendar('Asia/Dhaka')
  const horizon = horizonFor(13 * 3_600_000, 48)
  const cells = [createGrid(0.1).cellOf(23.7, 90.4)]
  const requestedAt = Date.now()
  const body = await (await fetch(system.provider.url + pathFor(cells, horizon, calendar.zone))).text()
  const catalogue = await smallText()

  const read: Readonly<Record<Reader, (text: string | Buffer) => Promise<unknown>>> = {
    provider: text =>
      decodeTimelines([Buffer.from(text)], { cells, horizon, calendar, clock: systemClock, requestedAt }),
    catalogue: async text => inspectSnapshot(String(text)),
    configuration: async text => {
      writeFileSync(file, text)
      return readConfig({ files: [file], env: {} })
    },
    traffic: async text => {
      writeFileSync(file, text)
      let requests = 0
      for await (const _ of readTraffic([file])) requests += 1
      return requests
    },
    result: async text => {
      writeFileSync(file, text)
      return readResults(file)
    },
  }
  /** The errors that are meant for people: those of a command, and of a provider. */
  const isMeant = (error: unknown): error is Error =>
    error instanceof InputError || (error instanceof ProviderError && error.message.length > 0)

  return {
    run: async ({ reader, changes, text: given, seed }) => {
      const text =
        given ??
        (reader === 'provider' ? changed(body, changes) : mutated(createRandom(seed, 'catalogue'), catalogue))
      const found: Finding[] = []
      const begun = process.cpuUsage()
      try {
        await read[reader](text)
      } catch (error) {
        if (!isMeant(error))
          found.push(finding(`${reader}: an error that nobody foresaw`, cut(String(error), 300)))
        else if (error.message.length > longestError)
          found.push(finding(`${reader}: an endless error`, `${error.message.length} characters`))
      }
      const { user, system: inKernel } = process.cpuUsage(begun)
      const ms = (user + inKernel) / 1_000
      if (ms > endsWithinMs) found.push(slowness(`${reader}: it takes long`, `${Math.round(ms)} ms`))
      return found
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

export const readersTarget: Target<ReaderCase> = {
  name: 'readers',
  share: 2,
  checks: 'a value, or an error that was meant for people, within three seconds',
  batch: 1_000,
  atOnce: 1,
  setting: {},
  generate,
  shapeOf: ({ reader, changes: [first] }) => `${reader}${first ? `: ${first.kind}` : ''}`,
  isAlone: () => false,
  smaller: function* (given) {
    for (const change of given.changes) if (given.changes.length > 1) yield { ...given, changes: [change] }
  },
  print: ({ reader, changes, text, seed }) =>
    `${reader} ${changes.map(changeText).join('; ') || text?.toString() || seed}`,
  open,
}
