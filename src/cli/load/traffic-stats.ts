// `abohawa traffic stats`: what is in traffic files, as text or JSON. What is counted is in traffic/stats/, how it looks on a
// terminal in traffic-stats-text.ts.

import { type Command, Option } from 'commander'
import type { Subject } from '../../load/traffic/stats/traffic-stats.ts'
import { interruption } from '../interruption.ts'
import { numberIn } from '../quantities.ts'
import { type AddCommand, counted } from '../terminal.ts'
import { addReadOptions, configuredCellOf, type ReadOptions } from './traffic-options.ts'

type Options = ReadOptions & { by: Subject; top: number; strict?: boolean }

export const addStatsCommand = (traffic: Command, add: AddCommand): Command =>
  add<Options>(traffic, 'stats', {
    summary:
      'show what is in traffic files: rate over time, places, key skew, reuse distance, miss-ratio curve',
    example: 'traffic stats samples/weekday.ndjson.gz',
    setUp: command =>
      void addReadOptions(command)
        .addOption(
          new Option('--by <object>', 'the object of reuse and of the miss-ratio curve')
            .choices(['cell', 'place', 'path', 'key'])
            .default('cell'),
        )
        .option('--top <number>', 'how many of the most popular are listed', numberIn(1, 10_000), 10)
        .option('--strict', 'end with 1 at the first faulty line'),
    run: async (terminal, { format, host, window, by, top, strict }, ...files) => {
      // Imported here, so that the other commands start without them.
      const { readTraffic } = await import('../../load/traffic/read-traffic.ts')
      const { createTrafficStats } = await import('../../load/traffic/stats/traffic-stats.ts')
      const { createFaults, sizeOfFiles, watch } = await import('./traffic-reading.ts')
      const { jsonOfStats, textOfStats } = await import('./traffic-stats-text.ts')
      const faults = createFaults(terminal, strict === true)
      const traffic = readTraffic(files, {
        window,
        host,
        format,
        onFault: faults.add,
      })
      const counters = createTrafficStats(by, top, await configuredCellOf(terminal))
      const watched = watch(terminal, traffic, await sizeOfFiles(files))
      let isStopped = false
      void interruption().then(() => {
        isStopped = true
      })
      let requests = 0
      for await (const batch of counters.pass(traffic.batches())) {
        requests += batch.length
        watched(requests)
        if (isStopped) break
      }
      terminal.progress('')
      faults.end()
      const stats = counters.stats()
      const summary = traffic.summary()
      terminal.show(jsonOfStats(stats, summary), textOfStats(stats, summary, terminal.columns ?? 100))
      if (isStopped)
        terminal.remark(`Interrupted: the figures are of the first ${counted(requests)} requests.`)
      return isStopped ? 1 : 0
    },
  })
