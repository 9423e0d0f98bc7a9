// Options that the commands on traffic files share, and the cells of the configured catalogue.

import { readCatalogue } from 'abohawa/catalogue/live-catalogue.ts'
import { numberIn } from 'abohawa/command-line/quantities.ts'
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
import { shareOf } from './quantities.ts'

export const addReadOptions = (command: Command): Command =>
  command
    .argument('<files...>', 'logs or traffic files, plain or gzip; - is standard input')
    .option('--format <name>', `format of all files: ${formatNames.join(', ')} (default: detected)`, formatIn)
    .addOption(hostOption())
    .option(
      '--window <requests>',
      'number of requests that are kept in memory and sorted',
      numberIn(1, 10_000_000),
      defaultWindow,
    )

export const outOption = (): Option =>
  new Option('--out <path>', 'file to write, with gzip if it ends in .gz; - is standard output').default('-')

/** Finds the cells of requests by the configured catalogue and grid; without a readable catalogue only recorded cells are known. */
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
    'keep only requests to this host (HAR, .gor, logs with hosts); default for HAR: the first host of this API',
  ).argParser(hostIn)

export const formatIn = (given: string): string => {
  if (formatNames.some(name => name === given)) return given
  throw new InvalidArgumentError(`Allowed: ${formatNames.join(', ')}.`)
}

/** In lower case, without the default port. */
const hostIn = (given: string): string => {
  const url = /[/?#@\s]/.test(given) ? null : URL.parse(`https://${given}`)
  if (url) return withoutUsualPort(url.host)
  throw new InvalidArgumentError('Allowed: a host such as api.example.org or localhost:8080.')
}

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
