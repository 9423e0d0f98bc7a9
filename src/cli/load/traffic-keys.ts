// `abohawa traffic keys`: the ids of the keys in traffic files, as the CSV that `abohawa keys create --from` reads. What it
// creates has each id as its external id, by which a replay finds the key of a request.

import type { Command } from 'commander'
import { csvLine } from '../../csv-text.ts'
import { InputError, messageOf } from '../../errors.ts'
import { formatNames } from '../../load/traffic/format.ts'
import { limitIn } from '../../metering/administration.ts'
import { checkTier } from '../keys/key-create.ts'
import { type AddCommand, counted } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { formatIn, hostOption } from './traffic-options.ts'
import { remarkLeftOut } from './traffic-rewrite-text.ts'

type Options = { subscriber: string; tier: string; limit: string; format?: string; host?: string }

// As many as `keys create --from` takes.
const maxKeys = 100_000

export const addKeysCommand = (traffic: Command, add: AddCommand): Command =>
  add<Options>(traffic, 'keys', {
    summary: 'list the ids of keys in traffic files, as CSV for keys create --from',
    example:
      'traffic keys samples/weekday.ndjson.gz > keys.csv\n  npm run -s abohawa -- keys create --from keys.csv --csv --out issued.csv',
    setUp: command =>
      void command
        .argument('<files...>', 'files in any of the formats, plain or gzip; - is standard input')
        .option('--subscriber <name>', 'the subscriber that gets the keys', 'Load test')
        .option('--tier <name>', 'the tier of each key', 'enterprise')
        .option(
          '--limit <requests>',
          'requests a day of each key, so that many replays on one day do not use it up; tier: that of the tier',
          '1000000000',
        )
        .option(
          '--format <name>',
          `of all files: ${formatNames.join(', ')}; detected from their content if not given`,
          formatIn,
        )
        .addOption(hostOption()),
    run: async (terminal, { subscriber, tier, limit, format, host }, ...files) => {
      checkTier(terminal, tier)
      const ownLimit = limit === 'tier' ? null : limitOption(limit)
      const { readTraffic } = await import('../../load/traffic/read-traffic.ts')
      const { createFaults } = await import('./traffic-rewrite.ts')
      const faults = createFaults(terminal, false)
      const requestsOf = new Map<string, number>()
      const traffic = readTraffic(files, {
        host,
        onFault: faults.add,
        ...(format === undefined ? {} : { format }),
      })
      for await (const requests of traffic.batches()) {
        for (const { key } of requests)
          if (key !== undefined) requestsOf.set(key, (requestsOf.get(key) ?? 0) + 1)
        if (requestsOf.size > maxKeys)
          throw new InputError(
            `the files have more than ${counted(maxKeys)} keys, which is all that keys create --from takes`,
          )
      }
      faults.end()
      remarkLeftOut(terminal, traffic.summary())
      const ids = [...requestsOf.keys()].sort()
      if (terminal.json)
        terminal.show(
          ids.map(externalId => ({
            externalId,
            subscriber,
            tier,
            limit: ownLimit,
            requests: requestsOf.get(externalId),
          })),
          '',
        )
      else {
        const rows = ids.map(id => csvLine([subscriber, tier, id, ownLimit]))
        await terminal.writeAll([csvLine(['subscriber', 'tier', 'external_id', 'limit']), ...rows].join(''))
      }
      return 0
    },
  })

const limitOption = (given: string): number => {
  try {
    return limitIn(given)
  } catch (error) {
    throw new UsageError(`${messageOf(error).replace('the limit', '--limit')}, or tier`, { cause: error })
  }
}
