// The files that commands write, checked before the work. No output replaces the store, a configuration or an input.

import { access, constants, realpath, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Option } from 'commander'
import { catalogueFile } from '../catalogue/snapshot-reader.ts'
import { InputError, messageOf } from '../common/errors.ts'
import { quotedPath } from '../common/outside-text.ts'
import { isSink, writeBeside } from '../common/write-beside.ts'
import { filesNamedIn, filesOf } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { storeFiles } from '../stores/sqlite/store-file.ts'
import type { Terminal } from './terminal.ts'

/** @param said which file, as the beginning of a sentence: `--out is "report.html"` */
export type Output = { readonly said: string; readonly path: string }

/** Those of options: `--out` and its paths. */
export const outputsOf = (option: string, ...paths: readonly (string | undefined)[]): Output[] =>
  paths.flatMap(path => (path === undefined ? [] : { said: `${option} is ${quotedPath(path)}`, path }))

export const forceOption = (): Option => new Option('--force', 'overwrite an existing file')

type OutputRules = {
  /** The files that the command reads; `-` is standard input. */
  readonly inputs: readonly (string | undefined)[]
  /** Whether an existing file may be replaced; undefined for a command that never replaces one. */
  readonly force: boolean | undefined
  /** Whether the command rebuilds the configured catalogue. */
  readonly isCatalogue?: boolean
}

type Surroundings = Pick<Terminal, 'config' | 'sources'>

/** @throws InputError for a file that may not or can't be written */
export const checkOutputs = async (
  terminal: Surroundings,
  outputs: readonly Output[],
  rules: OutputRules,
): Promise<void> => {
  await refuseKept(terminal, outputs, rules)
  const { force } = rules
  for (const { said, path } of outputs) {
    if (await isSink(path)) continue
    await checkWritable(said, path)
    if (!force && (await stat(path).catch(() => undefined)))
      throw new InputError(
        `${said}, which exists; ${force === undefined ? 'choose a new file' : '--force replaces it'}`,
      )
  }
}

/** @throws InputError for a file that no command may write */
export const refuseKept = async (
  terminal: Surroundings,
  outputs: readonly Output[],
  { inputs, isCatalogue = false }: Pick<OutputRules, 'inputs' | 'isCatalogue'>,
): Promise<void> => {
  if (outputs.length === 0) return
  const kept = new Map<string, string>()
  const keep = async (reason: string, paths: readonly (string | undefined)[]): Promise<void> => {
    for (const path of paths) if (path !== undefined) kept.set(await placeOf(path), reason)
  }
  const config = configOf(terminal)
  if (config && !isCatalogue) await keep('is the catalogue', [catalogueFile(config.catalogue.path)])
  if (config && config.store.path !== ':memory:')
    await keep('belongs to the store', storeFiles(config.store.path))
  const named = config ? [...filesNamedIn(config), config.redis.ca ?? undefined] : []
  await keep('belongs to the configuration', [...filesOf(terminal.sources), ...named])
  const standardInput = '/dev/stdin'
  await keep(
    'the command reads',
    inputs.map(path => (path === '-' ? standardInput : path)),
  )
  for (const { said, path } of outputs) {
    if (await isSink(path)) continue
    const place = await placeOf(path)
    const reason = kept.get(place)
    if (reason !== undefined) throw new InputError(`${said}, which ${reason}; choose another file`)
    kept.set(place, 'is written by another option')
  }
}

/** Undefined where it can't be read: then the command has its own word on it, or works without. */
const configOf = (terminal: Surroundings): Config | undefined => {
  try {
    return terminal.config()
  } catch (thrown) {
    if (thrown instanceof InputError) return undefined
    throw thrown
  }
}

/** Equal for two paths of one file, whether it is there or not. */
const placeOf = async (path: string): Promise<string> => {
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile()) return `${found.dev} ${found.ino}`
  return join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path))
}

const checkWritable = async (said: string, path: string): Promise<void> => {
  const found = await stat(path).catch(() => undefined)
  if (found && !found.isFile()) throw new InputError(`${said}, which is not a regular file`)
  // It is written beside and renamed.
  const where = dirname(path)
  const folder = await stat(where).catch(() => undefined)
  if (!folder?.isDirectory())
    throw new InputError(
      `${said}, which can't be written: ${quotedPath(where)} is ${folder ? 'no folder' : 'a folder that is missing'}`,
    )
  await access(where, constants.W_OK).catch(cause => {
    throw new InputError(`${said}, which can't be written: ${messageOf(cause)}`, { cause })
  })
}

/** Writes a report. @throws InputError */
export const writeOutput = ({ said, path }: Output, text: string, force: boolean): Promise<void> =>
  orSaid(said, async () => {
    if (await isSink(path)) await writeFile(path, text)
    else await writeBeside(path, { mode: 0o644, force }, (_, handle) => handle.writeFile(text))
  })

/** Writes a private file. @param fill as in `writeBeside`. @throws InputError */
export const writePrivateFile = <Filled>(
  { said, path }: Output,
  force: boolean,
  fill: Parameters<typeof writeBeside<Filled>>[2],
): Promise<Filled> =>
  orSaid(said, async () => {
    // A superuser would replace /dev/null for the whole machine.
    if (await isSink(path)) throw new InputError(`${said}, which is not a regular file`)
    return writeBeside(path, { mode: 0o600, force }, fill)
  })

const orSaid = async <Done>(said: string, write: () => Promise<Done>): Promise<Done> => {
  try {
    return await write()
  } catch (cause) {
    if (cause instanceof Error && 'syscall' in cause)
      throw new InputError(`${said}, which can't be written: ${messageOf(cause)}`, { cause })
    throw cause
  }
}
