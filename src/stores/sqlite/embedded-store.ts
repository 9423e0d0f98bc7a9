// The embedded store for a single gateway: an SQLite file in WAL mode. A write reaches the operating system before its
// promise resolves, so a killed process loses no count of a response it has sent. CLI commands can use the same file beside
// a running gateway.

import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../common/clock.ts'
import { InputError } from '../../common/errors.ts'
import { type RecordObserver, unobserved } from '../records.ts'
import type { Store } from '../store.ts'
import { newerFormat, storeFormat } from '../store-format.ts'
import { embeddedBytes } from './bytes.ts'
import { embeddedFleet } from './fleet.ts'
import { embeddedKeys, formatOf } from './keys.ts'
import { retriesOn, sqliteReason } from './retry.ts'
import { embeddedSpending } from './spending.ts'
import { prepareStoreFile } from './store-file.ts'
import { embeddedUsage } from './usage.ts'
import { embeddedUsageDetail } from './usage-detail.ts'

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA journal_size_limit = 16777216;
`
// Only while opening: afterwards steps are retried without blocking the event loop.
const busyTimeoutMs = 5_000

/** @param path of the file, created when absent; `:memory:` stores nothing on disk. @throws InputError when it can't be opened */
export const openEmbeddedStore = (
  path: string,
  clock: Clock,
  observer: Partial<RecordObserver> = {},
): Store => {
  let db: DatabaseSync | undefined
  try {
    if (path !== ':memory:') prepareStoreFile(path)
    db = new DatabaseSync(path, { timeout: busyTimeoutMs })
    const before = formatOf(db)
    // Before anything is changed, the journal's mode too.
    if (before > storeFormat) throw newerFormat(`store.path is ${path}`, before)
    return storeOn(db, path, clock, { ...unobserved, ...observer })
  } catch (cause) {
    if (db?.isOpen) db.close()
    if (cause instanceof InputError) throw cause
    throw new InputError(
      `store.path is ${path}, which can't be opened and written as an SQLite file: ${sqliteReason(cause)}`,
      { cause },
    )
  }
}

const storeOn = (db: DatabaseSync, path: string, clock: Clock, observer: RecordObserver): Store => {
  db.exec(schema)
  const parts = { db, clock, ...retriesOn(path, db), observer }
  const { withRetry } = parts
  const opened = {
    ...embeddedKeys(parts),
    ...embeddedUsage(parts),
    ...embeddedUsageDetail(parts),
    ...embeddedBytes(parts),
    ...embeddedFleet(parts),
    ...embeddedSpending(parts),
  }
  db.exec('PRAGMA busy_timeout = 0')

  return {
    kind: 'embedded',
    ...opened,
    ping: () => withRetry(() => void db.prepare('SELECT 1').get()),
    size: () =>
      withRetry(() => {
        const size = 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()'
        return { usedBytes: Number(db.prepare(size).get()?.bytes ?? 0), maxBytes: 0 }
      }),
    close: () =>
      withRetry(() => {
        if (db.isOpen) db.close()
      }),
  }
}
