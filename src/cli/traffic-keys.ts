// `abohawa traffic keys`: the ids of the keys in traffic files, as the CSV that `abohawa keys create --from` reads. What it
// creates has each id as its external id, by which a replay finds the key of a request.

import type { Command } from 'commander'
import { InputError, messageOf } from '../errors.ts'
import { limitIn } from '../metering/administration.ts'
import { csvLine } from './csv-text.ts'
import { checkTier } from './key-create.ts'
import { type AddCommand, counted, UsageError } from './terminal.ts'

type Options = { subscriber: string; tier: string; limit: string }

// As many as `keys create --from` takes.
const mostKeys = 100_000

export const addKeysCommand = (traffic: Command, add: AddCommand): void =>
  add<Options>(traffic, 'keys', {
    summary: 'list the ids of keys in traffic files, as CSV for keys create --from',
    example:
      'traffic keys samples/weekday.ndjson.gz > keys.csv\n  npm run -s abohawa -- keys create --from keys.csv --csv --out issued.csv',
    setUp: command =>
      void command
        .argument('<files...>', 'traffic files; - is standard input')
        .option('--subscriber <name>', 'who gets the keys', 'Load test')
        .option('--tier <name>', 'the tier of each key', 'enterprise')
        .option(
          '--limit <requests>',
          'requests a day of each key, so that many replays on one day do not use it up; tier: that of the tier',
          '1000000000',
        ),
    run: async (terminal, { subscriber, tier, limit }, ...files) => {
      checkTier(terminal, tier)
      const ownLimit = limit === 'tier' ? null : limitOption(limit)
      const { readTraffic } = await import('../traffic/read-traffic.ts')
      const requestsOf = new Map<string, number>()
      const traffic = readTraffic(files)
      for await (const requests of traffic.batches()) {
        for (const { key } of requests)
          if (key !== undefined) requestsOf.set(key, (requestsOf.get(key) ?? 0) + 1)
        if (requestsOf.size > mostKeys)
          throw new InputError(`there are more than ${counted(mostKeys)} keys; allowed: up to as many`)
      }
      const { requests, faultyLines } = traffic.summary()
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
      if (faultyLines > 0)
        terminal.remark(
          `${counted(faultyLines)} faulty lines were left out, besides ${counted(requests)} requests; \`abohawa traffic stats\` shows what is wrong with them.`,
        )
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
