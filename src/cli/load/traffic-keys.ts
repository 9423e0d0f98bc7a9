// `abohawa traffic import --as keys`: the ids of the keys in traffic files, as the CSV that `abohawa keys create --from` reads.
// What it creates has each id as its external id, by which a replay finds the key of a request.

import { csvLine } from '../../catalogue/csv-text.ts'
import { InputError } from '../../common/errors.ts'
import { readTraffic } from '../../load/traffic/read-traffic.ts'
import type { TrafficRequest } from '../../load/traffic/traffic-request.ts'
import { writeText } from '../../load/traffic/write-traffic.ts'
import { checkTier } from '../keys/key-create.ts'
import { counted, type Terminal } from '../terminal.ts'
import type { ImportOptions } from './traffic-options.ts'
import { createFaults, remarkLeftOut } from './traffic-reading.ts'

// As many as `keys create --from` takes.
const maxKeys = 100_000
// So much that many replays on one day do not use it up.
const limit = 1_000_000_000

/** Resolves to the exit code. @throws UsageError for a tier that is not configured; InputError for too many keys */
export const writeKeys = async (
  terminal: Terminal,
  files: readonly string[],
  { out, force, format, host, window, strict, tier }: ImportOptions,
  pass: (batches: AsyncIterable<TrafficRequest[]>) => AsyncGenerator<readonly TrafficRequest[]>,
): Promise<number> => {
  checkTier(terminal, tier)
  const faults = createFaults(terminal, strict === true)
  const ids = new Set<string>()
  const traffic = readTraffic(files, { host, format, window, onFault: faults.add })
  for await (const requests of pass(traffic.batches())) {
    for (const { key } of requests) if (key !== undefined) ids.add(key)
    if (ids.size > maxKeys)
      throw new InputError(
        `the files have more than ${counted(maxKeys)} keys, which is all that keys create --from takes`,
      )
  }
  faults.end()
  remarkLeftOut(terminal, traffic.summary())
  const rows = [...ids].sort().map(id => csvLine(['Load test', tier, id, limit]))
  const text = async function* () {
    yield [csvLine(['subscriber', 'tier', 'external_id', 'limit']), ...rows].join('')
  }
  await writeText(out, text(), { force: force === true })
  return 0
}
