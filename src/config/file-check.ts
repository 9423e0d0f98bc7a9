// Checks the files that a configuration names, without changing or connecting to anything.

import { constants, existsSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { catalogueFile, readSnapshot } from '../catalogue/snapshot-reader.ts'
import { InputError, messageOf } from '../common/errors.ts'
import { requireAppendable, requireFileOrFree } from '../common/regular-file.ts'
import { tlsOf } from '../stores/redis/place.ts'
import { requireServable } from './certificate-check.ts'
import { printPlace } from './faults.ts'
import type { ConfigFault, LoadedConfig } from './load.ts'
import type { Config } from './schema.ts'
import { ticketKeyOf } from './tls.ts'

/** A setting that names a file, and a check that throws when the file can't be used. */
type FileCheck = readonly [path: string, check: (config: Config, now: number) => unknown]

const { R_OK, W_OK, X_OK } = constants

const checks: readonly FileCheck[] = [
  ['server.tls.cert', ({ server }, now) => requireServable(server, now)],
  ['server.tls.ticketKey', ({ server }) => ticketKeyOf(server.tls)],
  ['redis.ca', ({ redis: { url, ca } }) => url !== null && tlsOf({ url, ca })],
  ['store.path', ({ redis, store }) => (redis.url === null ? checkStoreFile(store.path) : undefined)],
  ['log.file', ({ log }) => checkLogFile(log.file)],
  [
    'catalogue.path',
    ({ catalogue: { path } }) =>
      readSnapshot(catalogueFile(path)).catch(cause => {
        throw new InputError(`catalogue.path: ${messageOf(cause)}`, { cause })
      }),
  ],
]

/** Every fault of the files. @param isMeant which settings to check: a reload reads those again that were changed */
export const checkFiles = async (
  config: Config,
  origins: LoadedConfig['origins'],
  now: number,
  isMeant: (path: string) => boolean = () => true,
): Promise<ConfigFault[]> => {
  const faults: ConfigFault[] = []
  for (const [path, check] of checks) {
    if (!isMeant(path)) continue
    try {
      await check(config, now)
    } catch (error) {
      const place = origins.get(path)
      faults.push({ ...place, path, sentence: `${place ? printPlace(place) : path}: ${messageOf(error)}` })
    }
  }
  return faults
}

/** The folder of the store's file, or the one above: a start makes one folder and no more. */
export const storeFolder = (path: string): string => {
  const folder = dirname(resolve(path))
  return existsSync(folder) ? folder : dirname(folder)
}

/** Whether the embedded store can be written, or made. @throws InputError when not */
export const checkStoreFile = async (path: string): Promise<void> => {
  if (path === ':memory:') return
  const file = resolve(path)
  try {
    // SQLite writes files beside it. The dot makes a file instead of the folder an error.
    await access(`${storeFolder(path)}/.`, W_OK | X_OK)
    requireFileOrFree(file)
    if (existsSync(file)) await access(file, R_OK | W_OK)
  } catch (cause) {
    throw new InputError(`store.path is ${path}, which can't be written: ${messageOf(cause)}`, { cause })
  }
}

/** Whether the file of the log can be written, or made. @throws InputError when not */
export const checkLogFile = (path: string | null): void => {
  if (path === null) return
  try {
    requireAppendable(path)
  } catch (cause) {
    throw new InputError(`log.file is ${path}, which can't be written: ${messageOf(cause)}`, { cause })
  }
}
