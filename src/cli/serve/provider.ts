// `abohawa provider`: runs the simulator, which speaks the real provider's protocol, until a signal ends it.

import { InvalidArgumentError, Option } from 'commander'
import type { SimulatorOptions } from '../../../simulator/simulator.ts'
import { safeText } from '../../common/outside-text.ts'
import { interruption, stopCommand } from '../interruption.ts'
import { durationIn } from '../quantities.ts'
import type { AddTopCommand } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'

type Given = {
  host: string
  port: number
  seed: number
  latency: number
  limits: string
  runs: string
  requireKey?: string
  movedClock?: string
}

export const addProviderCommand: AddTopCommand = (program, add, summary) =>
  add<Given>(program, 'provider', {
    summary,
    example: 'provider --port 8090 --latency 80ms',
    setUp: command =>
      command
        .option('--host <address>', 'address to listen on', '127.0.0.1')
        .option('--port <number>', 'port to listen on, 0 for a free one', portNumber, 8090)
        .option('--seed <number>', 'equal seeds give equal weather', wholeNumber, 1)
        .option('--latency <duration>', 'delay of each response, such as 80ms', durationIn, 0)
        .option('--limits <kind>', 'free: the limits of the free host; none: no limits', 'none')
        .option(
          '--runs <kind>',
          'ecmwf: a model run every 6 h changes the weather; none: it never changes',
          'ecmwf',
        )
        .option('--require-key <key>', 'refuse requests without this key')
        // How a rehearsal starts its provider: with the first instant of its clock, ms since the epoch.
        .addOption(new Option('--moved-clock <instant>').hideHelp()),
    run: async (terminal, { host, port, seed, latency, limits, runs, requireKey, movedClock }) => {
      if (limits !== 'free' && limits !== 'none')
        throw new UsageError(`--limits is ${safeText(limits, 60)}; allowed: free, none`)
      if (runs !== 'ecmwf' && runs !== 'none')
        throw new UsageError(`--runs is ${safeText(runs, 60)}; allowed: ecmwf, none`)
      const { startSimulator } = await import('../../../simulator/simulator.ts')
      const options = {
        host,
        port,
        seed,
        latencyMs: latency,
        limits,
        runs,
        ...(requireKey === undefined ? {} : { apiKey: requireKey }),
      } as const
      if (movedClock !== undefined) return provideOnMovedClock(options, Number(movedClock))
      const { json, clock, remark } = terminal
      const stopped = interruption('SIGHUP')
      const provider = await startSimulator({ ...options, clock })
      // Programs wait for this line, with and without --json; people get a hint besides.
      process.stdout.write(
        `${JSON.stringify({ msg: 'listening', listener: 'provider', url: provider.url })}\n`,
      )
      if (!json)
        remark(
          `Set faults, latency and clock at ${provider.url}/control (docs/provider.md). Ctrl-C stops it.`,
        )
      await stopped
      await provider.close()
      return 0
    },
  })

/** In a process whose clock another one moves. */
const provideOnMovedClock = async (options: SimulatorOptions, start: number): Promise<number> => {
  const { startSimulator } = await import('../../../simulator/simulator.ts')
  const { createMovedClock } = await import('../../load/traffic/moved-clock.ts')
  const { takeCommands } = await import('../../load/rehearsal/commands.ts')
  const clock = createMovedClock(start)
  const stopped = stopCommand()
  const { url, counts, close } = await startSimulator({ ...options, clock })
  takeCommands(clock, { url, counts })
  await stopped
  await close()
  process.disconnect?.()
  return 0
}

const wholeNumber = (given: string): number => {
  if (!/^\d{1,9}$/.test(given)) throw new InvalidArgumentError('Allowed: a whole number.')
  return Number(given)
}

const portNumber = (given: string): number => {
  const port = wholeNumber(given)
  if (port > 65_535) throw new InvalidArgumentError('Allowed: a port from 0 to 65535.')
  return port
}
