// The keys of a replay: traffic has key ids, a file has the keys that the target issued. They are matched by external id or id; if
// none matches, in the order of first appearance.

import { parseCsv } from 'abohawa/catalogue/csv.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { quoted, quotedPath } from 'abohawa/common/outside-text.ts'
import { maxFileBytes, readTextFileSync } from 'abohawa/common/regular-file.ts'
import { unreadable } from 'abohawa/config/faults.ts'

export type KeyRow = {
  readonly id: string | undefined
  readonly externalId: string | undefined
  /** Undefined for a key that already existed, because keys are shown only once. */
  readonly key: string | undefined
}

const expected = 'the output of `abohawa keys create --json` or `--csv`'

export const readKeyFile = (file: string): KeyRow[] => {
  const text = textOf('--keys', file)
  const given = /^\s*[[{]/.test(text) ? rowsOfJson(text, file) : rowsOfCsv(text, file)
  const rows = given.map(({ where, id, externalId, key }) => {
    if (isText(key) && !isHeaderValue(key))
      throw new InputError(
        `${where} of ${quotedPath(file)} has a key with blanks or invalid characters; --keys takes ${expected}`,
      )
    const [ownId, otherId, ownKey] = [id, externalId, key].map(value => (isText(value) ? value : undefined))
    return { id: ownId, externalId: otherId, key: ownKey }
  })
  if (rows.some(({ key }) => key !== undefined)) return rows
  throw new InputError(`--keys is ${quotedPath(file)}, which has no key; --keys takes ${expected}`)
}

/** The only key or token of a file. @throws InputError */
export const readSecret = (option: string, what: 'key' | 'token', file: string): string => {
  const secret = textOf(option, file).trim()
  if (isHeaderValue(secret)) return secret
  throw new InputError(`${option} must be a file with only one ${what}, got ${quotedPath(file)}`)
}

const isHeaderValue = (text: string): boolean => /^[\x21-\x7e]{1,1000}$/.test(text)
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const textOf = (option: string, file: string): string => {
  try {
    return readTextFileSync(file, maxFileBytes.data)
  } catch (cause) {
    throw new InputError(`${option} is ${quotedPath(file)}, which can't be read: ${unreadable(cause)}`, {
      cause,
    })
  }
}

type GivenRow = { where: string; id?: unknown; externalId?: unknown; key?: unknown }

const rowsOfJson = (text: string, file: string): GivenRow[] => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new InputError(`--keys is ${quotedPath(file)}, which is not valid JSON; --keys takes ${expected}`, {
      cause,
    })
  }
  const inside =
    value instanceof Object && Object.hasOwn(value, 'keys') ? (value as { keys: unknown }).keys : value
  return [inside].flat().map((row, i) => ({ ...(row instanceof Object ? row : {}), where: `entry ${i + 1}` }))
}

const columns = {
  known: ['id', 'key', 'external_id', 'subscriber', 'tier', 'limit', 'expires', 'existed'],
  required: ['key'],
}

const rowsOfCsv = (text: string, file: string): GivenRow[] => {
  const { rows, faults } = parseCsv(text, columns, line => `line ${line}`)
  const [fault] = faults
  if (fault && /^subscriber,tier,external_id/.test(text))
    throw new InputError(
      `--keys is ${quotedPath(file)}, which has ids but no keys; give the output of \`abohawa keys create --from ${file} --csv\``,
    )
  if (fault)
    throw new InputError(
      `--keys is ${quotedPath(file)}: ${fault.row}, ${fault.column}: ${fault.message}; --keys takes ${expected}`,
    )
  return rows.map(({ line, fields: { id, external_id: externalId, key } }) => ({
    where: `line ${line}`,
    id,
    externalId,
    key,
  }))
}

const shown = 3

/**
 * The keys in the order of the ids.
 * @param reuse shares the keys of the file among ids without a key
 * @throws InputError where ids are left without a key
 */
export const keysFor = (ids: readonly string[], rows: readonly KeyRow[], reuse = false): string[] => {
  const byName = new Map<string, string | undefined>()
  for (const { id, externalId, key } of rows)
    for (const name of [id, externalId]) if (name !== undefined) byName.set(name, key)
  const given = rows.flatMap(({ key }) => key ?? [])
  const isNamed = ids.some(id => byName.has(id))
  const keys = ids.map(
    (id, i) => (isNamed ? byName.get(id) : given[i]) ?? (reuse ? given[i % given.length] : undefined),
  )
  const missing = ids.filter((_, i) => keys[i] === undefined)
  if (missing.length > 0) {
    const examples = missing.slice(0, shown).map(id => quoted(id))
    const found = isNamed
      ? `--keys has no key for ${missing.length} of ${ids.length} key ids of the traffic, such as ${examples.join(', ')}`
      : `the traffic has ${ids.length} key ids, but --keys has ${given.length} keys, none of them for such an id`
    throw new InputError(
      `${found}; --reuse-keys shares the keys of the file, --key FILE sends one key for all, and \`abohawa keys create --from\` creates a key for each external id`,
    )
  }
  return keys as string[]
}
