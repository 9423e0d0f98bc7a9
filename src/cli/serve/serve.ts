// `abohawa serve`: runs the gateway until a signal ends it, in this process or in several that share its port. Logs lines of JSON
// on standard output, or in `log.file`.

import { Option } from 'commander'
import { messageOf } from '../../common/errors.ts'
import { version } from '../../common/version.ts'
import { filesOf, type LoadedConfig, readConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import type { Gateway } from '../../gateway.ts'
import type { Log, OpenLog } from '../../telemetry/log.ts'
import { interruption, onSignal, stopCommand } from '../interruption.ts'
import type { AddTopCommand, Terminal } from '../terminal.ts'
import { checkShared, forProcess, processesIn } from './process-config.ts'
import type { Serving } from './supervisor.ts'

type Given = { processes: number; process?: string; movedClock?: string }

export const addServeCommand: AddTopCommand = (program, add, summary) =>
  add<Given>(program, 'serve', {
    summary,
    example: 'serve --config config/production.yaml',
    setUp: command =>
      command
        .option(
          '--processes <number>',
          'gateways that share server.port, one for each core; ops.port and health.port count up',
          processesIn,
          1,
        )
        // How several processes are started, each with its number.
        .addOption(new Option('--process <number>').hideHelp())
        // How a rehearsal starts its gateway: with the first instant of its clock, ms since the epoch.
        .addOption(new Option('--moved-clock <instant>').hideHelp()),
    run: async (terminal, given) => {
      const { processes, movedClock } = given
      const number = given.process === undefined ? undefined : Number(given.process)
      const read = (): LoadedConfig => {
        const loaded = readConfig(terminal.sources)
        return number === undefined ? loaded : forProcess(loaded, number)
      }
      const loaded = read()
      const { config } = loaded
      const isAbove = processes > 1 && number === undefined
      if (isAbove) checkShared(config, processes)
      // Imported here, so that the other commands start without the whole gateway.
      const { openLog } = await import('../../telemetry/log.ts')
      const opened = openLog(config.log.level, config.log.file, processes > 1, number)
      try {
        if (isAbove) {
          const { supervise } = await import('./supervisor.ts')
          return await supervise(processes, {
            args: process.argv.slice(2),
            log: opened.log,
            check: () => checkShared(readConfig(terminal.sources).config, processes),
            reopenLog: () => reopenLog(opened, config),
          })
        }
        onSignal('SIGUSR2', () => reopenLog(opened, config))
        const start = { terminal, read, loaded, opened, processes }
        if (movedClock !== undefined) await serveOnMovedClock(start, Number(movedClock))
        else await serveOnSystemClock(start, number !== undefined)
        return 0
      } finally {
        await opened.flush()
        // The channel would keep this process. With its end this process ends at once, whatever the log has still to write.
        if (movedClock !== undefined) process.disconnect?.()
      }
    },
  })

/** What a gateway in this process is started with. */
type Start = {
  readonly terminal: Terminal
  readonly read: () => LoadedConfig
  readonly loaded: LoadedConfig
  readonly opened: OpenLog
  /** How many serve together. */
  readonly processes: number
}

const reopenLog = ({ log, reopen }: OpenLog, { log: { file } }: Config): void => {
  try {
    reopen()
    log.info(file === null ? 'the log has no file to reopen' : 'log file reopened')
  } catch (error) {
    log.error({ reason: messageOf(error) }, 'log file not reopened, the former one stays in use')
  }
}

/** @param isOneOfSeveral whether another process has started this one, and is told when it serves */
const serveOnSystemClock = async (start: Start, isOneOfSeveral: boolean): Promise<void> => {
  const stopped = isOneOfSeveral ? Promise.race([interruption(), abandonment()]) : interruption()
  await serveUntil(start, stopped, ({ apiUrl, opsUrl, healthUrl }) => {
    logListening(start.opened.log, { ops: opsUrl, health: healthUrl, api: apiUrl })
    if (isOneOfSeveral) process.send?.({ opsUrl } satisfies Serving)
  })
}

/** Resolves when the process that started this one is gone. */
const abandonment = (): Promise<string> =>
  new Promise(resolve => {
    const leave = () => resolve('the end of the process that started this one')
    if (!process.connected) leave()
    process.once('disconnect', leave)
    // Else it would keep a process that has ended.
    process.channel?.unref()
  })

/** In a process whose clock another one moves. */
const serveOnMovedClock = async (start: Start, from: number): Promise<void> => {
  const { createMovedClock } = await import('../../load/traffic/moved-clock.ts')
  const { takeCommands } = await import('../../load/rehearsal/commands.ts')
  const clock = createMovedClock(from)
  await serveUntil(
    { ...start, terminal: { ...start.terminal, clock } },
    stopCommand(),
    ({ apiUrl, settled }) => takeCommands(clock, { url: apiUrl, settled }),
  )
}

/** Runs a gateway in this process. */
const serveUntil = async (
  { terminal: { sources, clock, env }, read, loaded, opened: { log, lines, dropped }, processes }: Start,
  stopped: Promise<string>,
  onServing: (gateway: Gateway) => void,
): Promise<void> => {
  const { startGateway } = await import('../../gateway.ts')
  const { openTracing } = await import('../../telemetry/tracing.ts')
  const tracing = await openTracing(env, log)
  const source = { read, files: filesOf(sources) }
  const parts = { clock, log, lines, dropped, source, tracing, processes }
  const gateway = await startGateway(loaded.config, parts)
  onServing(gateway)
  onSignal('SIGHUP', () => {
    gateway.reloadCatalogue().then(
      () => log.info('catalogue reloaded'),
      error => log.error({ reason: messageOf(error) }, 'catalogue not reloaded'),
    )
    gateway.reloadConfig().then(outcome => {
      // The reload logs what it applied or refused.
      if (outcome === 'unchanged') log.info('configuration unchanged')
    })
  })
  const signal = await stopped
  log.info({ signal }, 'stopping')
  await gateway.close()
  await tracing?.close()
  log.info('stopped')
}

/** Logged at every level: who starts it on port 0 has to learn the addresses. */
const logListening = (log: Log, urls: Readonly<Record<string, string | undefined>>): void => {
  const always = log.child({}, { level: 'info' })
  for (const [listener, url] of Object.entries(urls))
    if (url !== undefined) always.info({ listener, url, version }, 'listening')
}
