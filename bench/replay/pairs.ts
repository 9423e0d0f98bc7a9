// How often `replay report` calls a difference real where there is none: pairs of equal replays against one warm gateway, in
// turn. test/load/report/comparison.test.ts checks the comparison with made-up runs.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '../../test/scenarios/set-up.ts'
import { product } from '../../test/support/process.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { count, type Row } from '../row.ts'
import { outputOf } from '../speed/command-output.ts'
import { gatewayEnv, startGateway } from '../speed/gateways.ts'
import { onCores, serverCores } from '../speed/pinned.ts'

const pairsCount = 20
const rate = 300
// Of fewer than ten steps of a second no percentile has an interval.
const seconds = 12
const traffic = new URL('../../samples/weekday.ndjson.gz', import.meta.url).pathname
// The weather gets older from run to run; it is so old that the difference is under a tenth.
const agesForMs = 150_000

type Compared = {
  readonly warnings: readonly { readonly obstacle: string }[]
  readonly differences: readonly {
    readonly metric: string
    readonly verdict: string
    readonly change: { readonly value: number } | null
  }[]
}

export const pairs: Row = {
  id: 'pairs',
  method: `${pairsCount} pairs of equal replays of the sample weekday at ${rate} requests a second for ${seconds} s, one after the other against one gateway with a warm cache, \`replay report\` on each pair.`,
  run: async (scope, progress) => {
    const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
    scope.teardown(() => rm(folder, { recursive: true, force: true }))
    const provider = await startProvider(scope, ['--runs', 'none'], null)
    const env = gatewayEnv(provider.url, { ABOHAWA_STORE__PATH: join(folder, 'store.db') })
    const keyFile = join(folder, 'key')
    await writeFile(keyFile, await createKey(env))
    const { urls } = await startGateway(scope, folder, serverCores[0], env)
    const command = (...args: readonly string[]): Promise<string> =>
      outputOf(...onCores(serverCores[1], product, args))
    const replay = async (name: string): Promise<string> => {
      const file = join(folder, `${name}.json`)
      const target = ['--target', urls.api ?? '', '--ops', urls.ops ?? '', '--key', keyFile]
      await command(
        'replay',
        traffic,
        ...target,
        '--rate',
        `${rate}`,
        '--duration',
        `${seconds}s`,
        '--out',
        file,
      )
      return file
    }
    progress('warms the cache')
    await replay('warm-up')
    await pause(agesForMs)

    const found: { readonly metric: string; readonly verdict: string; readonly pair: number }[] = []
    let warned = 0
    for (let pair = 1; pair <= pairsCount; pair++) {
      progress(`pair ${pair} of ${pairsCount}`)
      const [a, b] = [await replay(`${pair}-a`), await replay(`${pair}-b`)]
      const compared = await command('replay', 'report', a, b, '--json')
      const { differences, warnings } = JSON.parse(compared) as Compared
      for (const { metric, verdict, change } of differences) {
        found.push({ metric, verdict, pair })
        if (verdict === 'better' || verdict === 'worse')
          progress(`pair ${pair}: ${metric} is ${verdict}, by ${Math.round(100 * (change?.value ?? 0))} %`)
      }
      if (warnings.length > 0) warned += 1
      progress(`pair ${pair}: warnings: ${warnings.map(({ obstacle }) => obstacle).join(', ') || 'none'}`)
    }
    const verdicts = ['better', 'worse', 'unclear', 'noise'] as const
    const metrics = [...new Set(found.map(({ metric }) => metric))]
    const of = (verdict: string, metric?: string): number[] =>
      found
        .filter(one => one.verdict === verdict && (metric === undefined || one.metric === metric))
        .map(({ pair }) => pair)
    const real = [...of('better'), ...of('worse')]
    const unclear = new Set(of('unclear')).size
    return {
      findings: [
        {
          what: 'Pairs with a difference that is called real',
          bar: 'at most one figure of one pair',
          measured: `${new Set(real).size} of ${pairsCount}, ${real.length} of ${count(found.length)} figures; pairs with an unclear one: ${unclear}; with a warning: ${warned}`,
          // No difference of a disturbed run is called real.
          met: warned === pairsCount ? null : real.length <= 1,
          figures: { pairs: new Set(real).size, real: real.length, figures: found.length, unclear, warned },
        },
      ],
      table: {
        head: ['figure', ...verdicts],
        lines: metrics.map(metric => [metric, ...verdicts.map(verdict => `${of(verdict, metric).length}`)]),
      },
      notes: [
        `${cpus()[0]?.model ?? 'CPU'}, ${availableParallelism()} cores; load average at the end ${loadavg()[0]?.toFixed(1)}.`,
      ],
    }
  },
}
