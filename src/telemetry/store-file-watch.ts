// Notices when somebody moves, removes or replaces a file of the embedded store. The gateway keeps writing to the open file, commands use
// the other one, and a restart loses what was written. The log and /readyz say so until the file is put back.

import { type BigIntStats, statSync } from 'node:fs'
import { storeFiles } from '../stores/sqlite/store-file.ts'
import type { Log } from './log.ts'

export type StoreFileWatch = ReturnType<typeof watchStoreFile>

const checkEveryMs = 1_000

/** Undefined for a file that is not there, or can't be looked at. */
const statOf = (file: string): BigIntStats | undefined => {
  try {
    return statSync(file, { bigint: true, throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** @param path of a store that has just been opened */
export const watchStoreFile = (path: string, log: Log) => {
  const opened = storeFiles(path).flatMap(file => {
    const stat = statOf(file)
    return stat ? [{ file, stat }] : []
  })
  let fault: string | undefined
  const check = (): void => {
    const found = opened.find(({ file, stat }) => {
      const { dev, ino } = statOf(file) ?? {}
      return dev !== stat.dev || ino !== stat.ino
    })
    const next = found && `${found.file} is not the file that is open: it was moved, removed or replaced`
    if (next !== undefined && fault === undefined)
      log.error(
        {
          reason: next,
          next: 'put the original file back, or what is written from now on is lost when the gateway stops',
        },
        'store file moved or replaced',
      )
    if (next === undefined && fault !== undefined) log.info('store file is back')
    fault = next
  }
  const timer = setInterval(check, checkEveryMs).unref()
  return {
    /** Undefined while the files are those that are open. */
    fault: (): string | undefined => {
      check()
      return fault
    },
    close: (): void => clearInterval(timer),
  }
}
