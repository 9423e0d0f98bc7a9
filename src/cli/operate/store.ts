// `abohawa store …`: exports, imports and copies keys, subscribers and usage, and backs up the file of the embedded store.

import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, Option } from 'commander'
import {
  type AddCommand,
  type AddTopCommand,
  counted,
  numbered,
  type Terminal,
} from '../../command-line/terminal.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import {
  checkOutputs,
  forceOption,
  outputsOf,
  refuseKept,
  writePrivateFile,
} from '../../command-line/writable.ts'
import { createCalendar } from '../../common/calendar.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { redactedUrl } from '../../common/redacted-url.ts'
import { FileError, maxFileBytes, readLines } from '../../common/regular-file.ts'
import { isSink } from '../../common/write-beside.ts'
import type { Config } from '../../config/schema.ts'
import { isRedisUrl, redisPrefix } from '../../config/texts.ts'
import { exportRecords, type Imported, importRecords, type Totals } from '../../keys/transfer.ts'
import { readRecord, type TransferRecord, writeRecord } from '../../keys/transfer-records.ts'
import {
  openStore,
  openUsedStore,
  type StoreOptions,
  storeName,
  usedStoreFile,
} from '../../stores/open-store.ts'
import type { RedisMode } from '../../stores/redis/place.ts'
import { backUp } from '../../stores/sqlite/backup.ts'
import type { Store } from '../../stores/store.ts'
import { addCreateStoreOption, openCommandStore } from '../administer.ts'

export const addStoreCommands: AddTopCommand = (program, add, summary) => {
  const store = program
    .command('store')
    .summary(summary)
    .description(
      'The store of keys, subscribers and usage. Weather is not moved: the gateway loads it again.',
    )

  addBackupCommand(store, add)
  addExportCommand(store, add)
  addImportCommand(store, add)
  addCopyCommand(store, add)
}

const addBackupCommand = (store: Command, add: AddCommand): Command =>
  add<{ force?: boolean }>(store, 'backup', {
    summary: 'copy the embedded store, even while gateways run, and check the copy',
    example: 'store backup /var/backups/abohawa.db',
    setUp: command => command.argument('<file>', 'the copy (mode 0600)').addOption(forceOption()),
    run: async (terminal, { force = false }, file = '') => {
      const config = terminal.config()
      if (config.redis.url !== null)
        throw new InputError(
          `the store is ${storeName(config)}, which Redis backs up itself (docs/operating/redis.md); \`abohawa store export --file FILE\` writes its keys, subscribers and usage`,
        )
      const path = usedStoreFile(config)
      const backup = { said: `the backup is ${file}`, path: file }
      await checkOutputs(terminal, [backup], { inputs: [], force })
      const progress = (copied: number, pages: number) =>
        terminal.progress(`${file}: ${Math.floor((copied / pages) * 100)} %`)
      const backedUp = await writePrivateFile(backup, force, async (beside, handle) => {
        await handle.close()
        return backUp(path, beside, progress).catch(cause => {
          throw new InputError(`${path} can't be backed up to ${file}: ${messageOf(cause)}`, { cause })
        })
      })
      terminal.progress('')
      terminal.show(
        { file, ...backedUp, store: path },
        `${file}: ${totalsText(backedUp)}, of ${path}; its integrity is checked.`,
      )
    },
  })

const addExportCommand = (store: Command, add: AddCommand): Command =>
  add<{ file?: string; force?: boolean }>(store, 'export', {
    summary: 'write all key hashes, subscribers and usage as JSON lines',
    example: 'store export --file keys.ndjson',
    setUp: command =>
      command.option('--file <path>', 'file to write (default: standard output)').addOption(forceOption()),
    run: async (terminal, { file, force = false }) => {
      const config = terminal.config()
      const [output] = outputsOf('--file', file)
      await checkOutputs(terminal, outputsOf('--file', file), { inputs: [], force })
      const store = storeName(config)
      await using from = await openExport(terminal, config)
      const { records, leftOut } = from
      const totals: Totals = { subscribers: 0, keys: 0, usage: 0 }
      const lines = linesOf(records, totals, terminal)
      if (!output) {
        await pipeline(lines, process.stdout, { end: false })
        terminal.remark(`${totalsText(totals)}, of ${store}.`)
      } else {
        // It names subscribers.
        await writePrivateFile(output, force, (beside, handle) =>
          pipeline(lines, createWriteStream(beside, { fd: handle })),
        )
        terminal.show({ file, ...totals, leftOut, store }, `${file}: ${totalsText(totals)}, of ${store}.`)
      }
      return codeFor(leftOut, terminal)
    },
  })

const addImportCommand = (store: Command, add: AddCommand): Command =>
  add<{ createStore?: boolean }>(store, 'import', {
    summary: 'import an export, or nothing if a line conflicts',
    example: 'store import keys.ndjson',
    setUp: command => addCreateStoreOption(command.argument('<file>', 'file written by `store export`')),
    run: async (terminal, { createStore = false }, file = '') => {
      if (await isSink(file))
        throw new InputError(
          `${file} can't be read twice, as an import does: it is not a regular file; write it into one`,
        )
      const config = terminal.config()
      const openUsed: typeof openStore = (...given) => openUsedStore(...given, 'store import')
      await using store = await openCommandStore(config, terminal.clock, createStore ? openStore : openUsed)
      const lineOf = (number: number) => `line ${number} of ${file}`
      const imported = await importInto(terminal, config, store, () => recordsIn(file, lineOf), lineOf)
      terminal.show(
        { file, ...imported, store: storeName(config) },
        `${file} into ${storeName(config)}: ${importedText(imported)}.`,
      )
    },
  })

const addCopyCommand = (store: Command, add: AddCommand): Command =>
  add<{ to: string; toPrefix?: string; toMode?: RedisMode }>(store, 'copy', {
    summary: 'copy keys, subscribers and usage into another store; stop the gateways first',
    example: 'store copy --to redis://127.0.0.1:6379',
    setUp: command =>
      command
        .requiredOption('--to <url or path>', 'redis:// or rediss:// URL, or path of an SQLite file')
        .option('--to-prefix <prefix>', 'key prefix in the target Redis (default: from the configuration)')
        .addOption(
          new Option(
            '--to-mode <mode>',
            'mode of the target Redis (default: from the configuration)',
          ).choices(redisModes),
        ),
    run: async (terminal, { to, toPrefix, toMode }) => {
      const config = terminal.config()
      const target = targetOf(config, to, toPrefix, toMode)
      const [configured, next] = [storeName(config), storeName(target)]
      if (next === configured)
        throw new UsageError(`--to must be another store than the configured one, got "${redactedUrl(to)}"`)
      if (target.redis.url === null) await refuseKept(terminal, outputsOf('--to', to), { inputs: [] })
      await using from = await openExport(terminal, config)
      const { leftOut } = from
      // Named on the command line, so it may be new.
      await using into = await openCommandStore(target, terminal.clock, openStore)
      // Read into memory first, so that both passes see the same records while a gateway still counts.
      const records = await Array.fromAsync(from.records)
      const lineOf = (number: number) => `record ${number} of ${configured}`
      const imported = await importInto(terminal, config, into, () => Readable.from(records), lineOf)
      terminal.show(
        { from: configured, to: next, ...imported, leftOut },
        `${configured} into ${next}: ${importedText(imported)}.`,
      )
      return codeFor(leftOut, terminal)
    },
  })

const codeFor = (leftOut: readonly string[], terminal: Terminal): number => {
  for (const sentence of leftOut) terminal.remark(`Left out: ${sentence}.`)
  if (leftOut.length === 0) return 0
  terminal.remark('Import an earlier export into this store, which writes lost records again.')
  return 1
}

const openExport = async (terminal: Terminal, config: Config) => {
  const { clock } = terminal
  const leftOut: string[] = []
  const store = await openCommandStore(config, clock, openUsedStore, ({ record, name, fault }) =>
    leftOut.push(`the record of ${record} ${name} is damaged: ${fault}`),
  )
  const calendar = createCalendar(config.quota.timeZone)
  const records = exportRecords(store, calendar, clock, sentence => leftOut.push(sentence))
  return { records, leftOut, [Symbol.asyncDispose]: () => store.close() }
}

const importInto = (
  terminal: Terminal,
  { quota }: Config,
  store: Store,
  records: () => AsyncIterable<TransferRecord>,
  lineOf: (number: number) => string,
): Promise<Imported> => {
  const onLine = (pass: string, lines: number) => {
    if (lines % progressEvery === 0) terminal.remark(`${counted(lines)} records ${pass}`)
  }
  const options = { keepUsageForMs: quota.keepUsageForMs, onLine }
  return importRecords(store, records, lineOf, options, createCalendar(quota.timeZone), terminal.clock)
}

const targetOf = (
  config: Config,
  to: string,
  prefix = config.redis.prefix,
  mode = config.redis.mode,
): Config & StoreOptions => {
  // Text with a user and a password before an @ is a mistyped URL, and must not become a file name.
  if (!to.includes('://') && !/:.*@/s.test(to))
    return { ...config, redis: { ...config.redis, url: null }, store: { path: to } }
  if (!isRedisUrl(to))
    throw new UsageError(
      `--to must be a redis:// or rediss:// URL (in a password, write @ / ? # as %40 %2F %3F %23), or the path of an SQLite file, got "${redactedUrl(to)}"`,
    )
  if (!redisPrefix.pattern.test(prefix))
    throw new UsageError(`--to-prefix must be ${redisPrefix.allowed}, got "${prefix}"`)
  const { redis } = config
  // The configured nodes belong to the configured Redis, if there is one.
  const nodes = redis.url === null ? redis.nodes : []
  const names = { urlName: '--to', modeName: '--to-mode' }
  return { ...config, redis: { ...redis, ...names, url: to, prefix, mode, nodes } }
}

const progressEvery = 10_000
const redisModes: readonly RedisMode[] = ['single', 'sentinel', 'cluster']

async function* linesOf(
  records: AsyncIterable<TransferRecord>,
  totals: Totals,
  terminal: Terminal,
): AsyncGenerator<string> {
  let written = 0
  for await (const record of records) {
    if (record.record === 'end') {
      const { record: _, ...counts } = record
      Object.assign(totals, counts)
    }
    yield `${writeRecord(record)}\n`
    written += 1
    if (written % progressEvery === 0) terminal.remark(`${counted(written)} records written`)
  }
}

/** @throws InputError that names the line */
async function* recordsIn(file: string, lineOf: (number: number) => string): AsyncGenerator<TransferRecord> {
  let number = 0
  try {
    for await (const line of readLines(file, maxFileBytes.line)) {
      number += 1
      yield readRecord(line)
    }
  } catch (cause) {
    if (cause instanceof FileError || (cause instanceof Error && 'syscall' in cause))
      throw new InputError(`${file} can't be read: ${messageOf(cause)}`, { cause })
    if (cause instanceof InputError)
      throw new InputError(`${lineOf(number)} is damaged: ${cause.message}; nothing was imported`, { cause })
    throw cause
  }
}

const totalsText = ({ subscribers, keys, usage }: Totals): string =>
  [
    numbered(subscribers, 'subscriber', 'subscribers'),
    numbered(keys, 'key', 'keys'),
    `${numbered(usage, 'count', 'counts')} of a day`,
  ].join(', ')

const importedText = ({ newSubscribers, newKeys, ...totals }: Imported): string =>
  `${totalsText(totals)}; new are ${numbered(newSubscribers, 'subscriber', 'subscribers')} and ${numbered(newKeys, 'key', 'keys')}`
