// `abohawa provider`: runs the simulator, which speaks the real provider's protocol, until a signal ends it.

import { interruption, stopCommand } from 'abohawa/command-line/interruption.ts'
import { choiceOption, durationIn, numberIn } from 'abohawa/command-line/quantities.ts'
import type { AddTopCommand } from 'abohawa/command-line/terminal.ts'
import { Option } from 'commander'
import type { SimulatorOptions } from '../simulator.ts'

type Given = Required<Pick<SimulatorOptions, 'host' | 'port' | 'seed' | 'limits' | 'runs'>> & {
  latency: number
  requireKey?: string
  movedClock?: string
}

export const addCommand: AddTopCommand = (program, add, summary) =>
  add<Given>(program, 'provider', {
    summary,
    example: 'provider --port 8090 --latency 80ms',
    setUp: command =>
      command
        .option('--host <address>', 'address to listen on', '127.0.0.1')
        .option('--port <number>', 'port to listen on; 0 for a free port', numberIn(0, 65_535), 8090)
        .option('--seed <number>', 'equal seeds give equal weather', numberIn(0, 999_999_999), 1)
        .option('--latency <duration>', 'delay of each response, such as 80ms', durationIn, 0)
        .addOption(choiceOption('--limits <kind>', 'limits of the free service, or none', ['none', 'free']))
        .addOption(choiceOption('--runs <kind>', 'a model run every 6 h, or none', ['ecmwf', 'none']))
        .option('--require-key <key>', 'refuse requests without this key')
        // For rehearsals: the first instant of a moved clock, ms since the epoch.
        .addOption(new Option('--moved-clock <instant>').hideHelp()),
    run: async (
      { json, clock, remark },
      { host, port, seed, latency, limits, runs, requireKey, movedClock },
    ) => {
      const { startSimulator } = await import('../simulator.ts')
      const given = { host, port, seed, latencyMs: latency, limits, runs }
      const options = requireKey === undefined ? given : { ...given, apiKey: requireKey }
      if (movedClock !== undefined) return provideOnMovedClock(options, Number(movedClock))
      const stopped = interruption('SIGHUP')
      const provider = await startSimulator({ ...options, clock })
      // Programs wait for this line, with and without --json.
      process.stdout.write(
        `${JSON.stringify({ msg: 'listening', listener: 'provider', url: provider.url })}\n`,
      )
      if (!json)
        remark(
          `Set faults, latency and clock at ${provider.url}/control (tools/provider/README.md). Ctrl-C stops it.`,
        )
      await stopped
      await provider.close()
    },
  })

/** Serves in a process whose clock another process moves. */
const provideOnMovedClock = async (options: SimulatorOptions, start: number): Promise<number> => {
  const { startSimulator } = await import('../simulator.ts')
  const { createMovedClock } = await import('abohawa/common/moved-clock.ts')
  const { takeCommands } = await import('abohawa/common/moved-clock-commands.ts')
  const clock = createMovedClock(start)
  const stopped = stopCommand()
  const { url, counts, close } = await startSimulator({ ...options, clock })
  takeCommands(clock, { url, counts })
  await stopped
  await close()
  process.disconnect?.()
  return 0
}
