// Target: the functions that read what comes from outside, called in this process, by the thousand in a second: bodies of the
// provider, catalogues, configurations, traffic files and results. Each ends soon, with a value or with an error that was
// meant for people. What a gateway makes of them is for the other targets.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc, { type Arbitrary } from 'fast-check'
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
import { demand, demandInTime } from '../fault.ts'
import { batchesOf, several, type Target, weighted } from '../target.ts'
import { type Change, changed, changeKinds, changesOf, changeText } from './body-changes.ts'
import { configTexts } from './config-texts.ts'
import { type Edit, editedTexts, edits, reportEdits, seeds, trafficFormats } from './traffic-texts.ts'

type Reader = 'provider' | 'catalogue' | 'configuration' | 'traffic' | 'result'
type ReaderCase = {
  readonly reader: Reader
  /** Of a body of the provider: made from a right one when it is read. */
  readonly changes?: readonly Change[]
  /** Of a catalogue, as well. */
  readonly edit?: Edit
  /** Of all others. */
  readonly text?: string | Buffer
}

const texts = (reader: Reader, of: Arbitrary<string | Buffer>): Arbitrary<ReaderCase> =>
  of.map(text => ({ reader, text }))
/** What comes over the network comes most often; a configuration or a result takes as long as twenty bodies or more. */
const cases: Arbitrary<ReaderCase> = weighted<ReaderCase>(
  [230, several(changesOf(...changeKinds), 1, 3).map(changes => ({ reader: 'provider', changes }))],
  [84, edits.map(edit => ({ reader: 'catalogue', edit }))],
  [84, fc.oneof(...trafficFormats.map(format => texts('traffic', editedTexts(format, 1))))],
  [1, configTexts.map(({ bytes }) => ({ reader: 'configuration', text: bytes }))],
  [1, reportEdits.map(edit => ({ reader: 'result', text: edit(seeds.report) }))],
)

// Of processor time: far more than the slowest of them needs, a configuration of 300,000 lines.
const endsWithinMs = 3_000
// A configuration may have 101 sentences.
const longestError = 101 * 1_000

/** Some divisions of a catalogue, so that a change hits something. */
const smallText = async (): Promise<string> => {
  const text = await readFile(await smallCatalogue(), 'utf8')
  const [head = '', ...lines] = text.split('\n    {"id":')
  return [head, ...lines.slice(0, 8)].join('\n    {"id":')
}

/** An error that is meant for people: of a command, or of a provider. */
const isMeant = (error: unknown): error is Error =>
  error instanceof InputError || (error instanceof ProviderError && error.message.length > 0)

export const readers: Target<ReaderCase> = {
  name: 'readers',
  share: 2,
  checks: 'a value, or an error that was meant for people, within three seconds',
  batches: batchesOf(cases, 2_500),
  atOnce: 1,
  setting: {},
  kindOf: ({ reader, changes }) => `${reader}${changes?.[0] ? `: ${changes[0].kind}` : ''}`,
  print: ({ reader, changes = [], text, edit }) =>
    `${reader} ${changes.map(changeText).join('; ')}${text ?? edit?.('{"id":"1","name":"abcdefghijklmnopqrstuvwxyz"}') ?? ''}`,
  open: async system => {
    const folder = mkdtempSync(join(tmpdir(), 'abohawa-readers-'))
    const file = join(folder, 'given')
    const calendar = createCalendar('Asia/Dhaka')
    const horizon = horizonFor(13 * 3_600_000, 48)
    const cells = [createGrid(0.1).cellOf(23.7, 90.4)]
    const expected = { cells, horizon, calendar, clock: systemClock, requestedAt: Date.now() }
    const body = await (await fetch(system.provider.url + pathFor(cells, horizon, calendar.zone))).text()
    const catalogue = await smallText()

    const ofFile: Readonly<Record<string, () => unknown>> = {
      configuration: () => readConfig({ files: [file], env: {} }),
      traffic: () => Array.fromAsync(readTraffic([file])),
      result: () => readResults(file),
    }
    const read = async ({ reader, changes, edit, text }: ReaderCase): Promise<unknown> => {
      if (changes) return decodeTimelines([Buffer.from(changed(body, changes))], expected)
      if (edit) return inspectSnapshot(edit(catalogue))
      writeFileSync(file, text ?? '')
      return ofFile[reader]?.()
    }
    return {
      run: async given => {
        const begun = process.cpuUsage()
        try {
          await read(given)
        } catch (error) {
          demand(isMeant(error), `${given.reader}: an error that nobody foresaw`, error)
          demand(
            error.message.length <= longestError,
            `${given.reader}: an endless error`,
            error.message.length,
          )
        }
        const { user, system: inKernel } = process.cpuUsage(begun)
        const ms = (user + inKernel) / 1_000
        demandInTime(ms <= endsWithinMs, `${given.reader}: it takes long`, `${Math.round(ms)} ms`)
      },
      close: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
}
