// Reads the keys of `keys create --from`: a CSV file, one key a line. Names the lines that are wrong; creates nothing.

import { parseCsv } from '../../catalogue/csv.ts'
import { counted } from '../../command-line/terminal.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { readTextFile } from '../../common/regular-file.ts'
import type { KeyRequest } from '../../keys/administration.ts'
import { limitIn } from '../../keys/key-request.ts'
import { givenTermsIn } from '../../keys/key-terms.ts'

/** Where a request came from, for messages about it. */
export type ReadRequest = KeyRequest & { readonly line?: number }

const required = ['subscriber', 'tier', 'external_id']
const columns = {
  known: [
    ...[...required, 'limit', 'expires'],
    ...['origins', 'addresses', 'endpoints', 'per_second', 'burst', 'per_minute'],
  ],
  required,
}
const maxRows = 100_000
const maxBytes = 33_554_432
const maxFaults = 10

/** @throws InputError that names the lines and columns which are wrong */
export const readRequests = async (file: string): Promise<ReadRequest[]> => {
  const text = await readTextFile(file, maxBytes).catch(cause => {
    throw new InputError(`--from is ${file}, which can't be read: ${messageOf(cause)}`, { cause })
  })
  const { rows, faults } = parseCsv(text, columns, line => `line ${line}`)
  if (faults.length > 0)
    throw wrongLines(
      file,
      faults.map(({ row, column, message }) => `${row}, ${column}: ${message}`),
    )
  if (rows.length === 0 || rows.length > maxRows)
    throw new InputError(`${file} must have 1 to ${counted(maxRows)} keys, got ${rows.length}`)
  const wrong: string[] = []
  const noting = <Value>(line: number, read: () => Value): Value | undefined => {
    try {
      return read()
    } catch (error) {
      wrong.push(`line ${line}: ${messageOf(error)}`)
      return undefined
    }
  }
  const requests = rows.map(({ line, fields }): ReadRequest => {
    const { subscriber = '', tier = '', external_id: externalId = '', limit = '', expires = '' } = fields
    return {
      line,
      subscriber,
      tier: tier.trim(),
      externalId,
      limit: noting(line, () => (limit.trim() === '' ? undefined : limitIn(limit.trim()))),
      expires: expires.trim() || undefined,
      ...noting(line, () =>
        givenTermsIn({ ...fields, perSecond: fields.per_second, perMinute: fields.per_minute }),
      ),
    }
  })
  if (wrong.length > 0) throw wrongLines(file, wrong)
  return requests
}

/** The error that names the first lines which are wrong. */
export const wrongLines = (file: string, lines: readonly string[]): InputError => {
  const more = lines.length > maxFaults ? [`and ${counted(lines.length - maxFaults)} more`] : []
  return new InputError(`${file}: ${[...lines.slice(0, maxFaults), ...more].join('; ')}; nothing was created`)
}
