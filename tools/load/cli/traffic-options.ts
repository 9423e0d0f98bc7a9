// The options that commands on traffic files share, what is read of them, and the cells of the configured catalogue.

import { readCatalogue } from 'abohawa/catalogue/live-catalogue.ts'
import { numberIn, shareOf } from 'abohawa/command-line/quantities.ts'
import type { Terminal } from 'abohawa/command-line/terminal.ts'
import { parseInstant } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { parseDuration } from 'abohawa/config/units.ts'
import { createGrid } from 'abohawa/weather/cell.ts'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { defaultWindow } from '../traffic/arrival-order.ts'
import { type CellOf, createCellOf, recordedCell } from '../traffic/endpoint-of-path.ts'
import { formatNames, withoutUsualPort } from '../traffic/format.ts'
import type { Moment } from '../traffic/selection.ts'

export const addReadOptions = (command: Command): Command =>
  command
    .argument('<files...>', 'files in any of the formats, plain or gzip; - is standard input')
    .option(
      '--format <name>',
      `of all files: ${formatNames.join(', ')}; detected from their content if not given`,
      formatIn,
    )
    .addOption(hostOption())
    .option(
      '--window <requests>',
      'how many requests are held back and sorted; docs/load-testing.md says what happens beyond',
      numberIn(1, 10_000_000),
      defaultWindow,
    )

export const outOption = (): Option =>
  new Option(
    '--out <path>',
    'the file to write, with gzip where it ends in .gz; - is standard output',
  ).default('-')

/**
 * The cells of requests that were recorded without one, by the configured catalogue and grid; where these can't be read, only
 * what was recorded is known, and that is said.
 */
export const configuredCellOf = async (terminal: Terminal): Promise<CellOf> => {
  try {
    const { catalogue, cache } = terminal.config()
    const places = await readCatalogue(catalogue.path)
    return createCellOf(places, places.bounds, createGrid(cache.cellDegrees))
  } catch (thrown) {
    if (!(thrown instanceof InputError)) throw thrown
    terminal.remark(`Cells that were not recorded are unknown: ${thrown.message}`)
    return recordedCell
  }
}

export const hostOption = (): Option =>
  new Option(
    '--host <host>',
    'take only the requests to this host (HAR, .gor, logs with hosts or URLs); default for a HAR: the host of its first request to this API',
  ).argParser(hostIn)

export const formatIn = (given: string): string => {
  if (formatNames.some(name => name === given)) return given
  throw new InvalidArgumentError(`Allowed: ${formatNames.join(', ')}.`)
}

/** As a URL has it: in lower case, with its port unless that is usual. */
const hostIn = (given: string): string => {
  const url = /[/?#@\s]/.test(given) ? null : URL.parse(`https://${given}`)
  if (url) return withoutUsualPort(url.host)
  throw new InvalidArgumentError('Allowed: a host such as api.example.org or localhost:8080.')
}

/** An instant, or a duration from the first request. */
export const momentIn = (given: string): Moment => {
  if (given === '0') return { after: 0 }
  const at = parseInstant(given)
  if (!Number.isNaN(at)) return { at }
  try {
    return { after: parseDuration(given) }
  } catch {
    throw new InvalidArgumentError(
      'Allowed: an instant such as 2026-11-21T06:00:00Z, or a duration from the first request such as 30m.',
    )
  }
}

export const shareIn = (given: string): number => {
  const share = shareOf(given)
  if (share > 0 && share <= 1) return share
  throw new InvalidArgumentError('Allowed: a share above 0 and up to 1, such as 0.1 or 10%.')
}

export const listIn = (given: string, before: readonly string[] = []): string[] => [
  ...before,
  ...given.split(',').filter(value => value !== ''),
]
