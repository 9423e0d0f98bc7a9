// Checks of files: the certificate, the catalogue, and the embedded store with its disk. Changes nothing.

import { existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { resolve } from 'node:path'
import { locationTypes } from '../../catalogue/location-schema.ts'
import { catalogueFile, readSnapshot } from '../../catalogue/snapshot-reader.ts'
import { isoOf, utcDayMs } from '../../common/calendar.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { safeText } from '../../common/outside-text.ts'
import { certificateFaults } from '../../config/certificate-check.ts'
import { checkLogFile, checkStoreFile, storeFolder } from '../../config/file-check.ts'
import type { Config } from '../../config/schema.ts'
import {
  type Certificate,
  certificateOf,
  chainOf,
  createCertificateExpiry,
  ticketKeyOf,
} from '../../config/tls.ts'
import { sqliteCodeOf } from '../../stores/sqlite/retry.ts'
import { exposedStoreFile } from '../../stores/sqlite/store-file.ts'
import { type Finding, fail, ok, warn } from './check.ts'

const renewWithinDays = 14

/** @param host the name by which consumers reach the gateway, where it is known */
export const certificateFindings = async (
  server: Config['server'],
  host: string | undefined,
  now: number,
): Promise<readonly Finding[]> => {
  const { tls } = server
  let fix = 'Make one of the mode 600: (umask 077; openssl rand 48 > FILE).'
  try {
    ticketKeyOf(tls)
    fix = 'Give server.tls.cert and server.tls.key files in PEM form that belong together.'
    const certificate = certificateOf(tls)
    if (!certificate) return [ok('none: HTTPS ends elsewhere, or is not needed')]
    const faults = await certificateFaults(server, now, host)
    const found = faults.map(({ isGrave, detail, fix }) => (isGrave ? fail : warn)(detail, fix))
    return [...found, ...expiryFindings(certificate, now, `Renew ${tls.cert} and its key.`)]
  } catch (error) {
    return [fail(messageOf(error), fix)]
  }
}

const expiryFindings = (certificate: Certificate, now: number, renew: string): readonly Finding[] => {
  const end = createCertificateExpiry(() => certificate)() as number
  const [own] = chainOf(certificate.cert)
  const days = Math.floor((end - now) / utcDayMs)
  if (days < 0) return []
  const which = end < own.validToDate.getTime() ? 'a certificate of its chain' : 'it'
  if (days < 1) return [fail(`${which} expires within a day, at ${isoOf(end).slice(0, 16)}Z`, renew)]
  if (days < renewWithinDays) return [warn(`${which} expires on ${dayOf(end)}, in ${days} days`, renew)]
  const names = safeText(own.subjectAltName ?? own.subject, 200)
  return [ok(`${names}, valid until ${dayOf(end)} (${days} days)`)]
}

export const logFinding = ({ file }: Config['log']): Finding => {
  try {
    checkLogFile(file)
    return ok(file === null ? 'it goes to standard output' : `${file} can be written`)
  } catch (error) {
    return fail(
      messageOf(error),
      'Let the user of the gateway write the file and its folder, or name another in log.file.',
    )
  }
}

export const catalogueFinding = async ({ path }: Config['catalogue']): Promise<Finding> => {
  try {
    const { locations } = await readSnapshot(catalogueFile(path))
    const counts = locationTypes.map(type => {
      const count = locations.filter(place => place.type === type).length
      return `${count.toLocaleString('en-US')} ${type}s`
    })
    return ok(counts.join(', '))
  } catch (error) {
    return fail(
      messageOf(error),
      'Fix the file (`abohawa catalogue check` lists every fault), or set catalogue.path to another; null is the shipped catalogue.',
    )
  }
}

const mib = 1_048_576
const roomOf = { fail: 16 * mib, warn: 256 * mib }

/** The file of the embedded store: usable and whole, its mode, and room on its disk. @param freeBytes of the disk under a folder, for tests */
export const embeddedFindings = async (
  path: string,
  freeBytes = async (folder: string) => {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
): Promise<Finding[]> => {
  if (path === ':memory:')
    return [warn('it is in memory, and lost when the process ends', 'Set store.path to a file.')]
  const file = resolve(path)
  return [await writable(file), mode(file), await room(storeFolder(path), freeBytes)]
}

const writable = async (file: string): Promise<Finding> => {
  try {
    await checkStoreFile(file)
    if (!existsSync(file)) return ok(`${file} is not there yet, and can be made`)
    const { DatabaseSync } = await import('node:sqlite')
    const db = new DatabaseSync(file, { readOnly: true })
    try {
      const [row] = db.prepare('PRAGMA quick_check(1)').all()
      const result = String(Object.values(row ?? {})[0] ?? 'no answer')
      return result === 'ok'
        ? ok(`${file} can be written and is whole`)
        : fail(`${file} is damaged: ${safeText(result, 200)}`, restore)
    } finally {
      db.close()
    }
  } catch (error) {
    const fault = error instanceof InputError ? error.message : `${file} can't be used: ${messageOf(error)}`
    return fail(fault, fixOf(error))
  }
}

const restore = 'Stop the gateway and restore a copy.'
const fixOf = (error: unknown): string => {
  const code = sqliteCodeOf(error)
  if (code === notADatabase) return `${restore} If it never was a store, name another file in store.path.`
  if (code === corrupt) return restore
  if (code === busy || code === locked) return 'End the other program that has locked the file.'
  return 'Let the user of the gateway read and write the file and its folder, or name another in store.path.'
}
// Primary result codes of SQLite.
const [busy, locked, corrupt, notADatabase] = [5, 6, 11, 26]

const mode = (file: string): Finding => {
  const exposed = exposedStoreFile(file)
  return exposed === undefined
    ? ok("other users of this machine can't read it")
    : warn(
        `${exposed} is open to other users of this machine, and names subscribers`,
        `Run chmod 600 ${exposed}.`,
      )
}

const room = async (folder: string, freeBytes: (folder: string) => Promise<number>): Promise<Finding> => {
  const fix = "Make room on that disk: counts can't be written when it is full."
  try {
    const free = await freeBytes(folder)
    const detail = `${Math.floor(free / mib).toLocaleString('en-US')} MiB are free on its disk`
    return free < roomOf.fail ? fail(detail, fix) : free < roomOf.warn ? warn(detail, fix) : ok(detail)
  } catch (error) {
    return fail(messageOf(error), 'Name a folder that is there in store.path.')
  }
}

const dayOf = (instant: number): string => isoOf(instant).slice(0, 10)
