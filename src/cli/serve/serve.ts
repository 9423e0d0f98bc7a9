// `abohawa serve`: runs the gateway until a signal ends it, in one process or several that share its port.

import { setFlagsFromString } from 'node:v8'
import { Option } from 'commander'
import { interruption, onSignal, stopCommand } from '../../command-line/interruption.ts'
import { processesIn } from '../../command-line/quantities.ts'
import type { AddTopCommand } from '../../command-line/terminal.ts'
import type { Clock } from '../../common/clock.ts'
import { messageOf } from '../../common/errors.ts'
import { listenFault, unusablePlace } from '../../common/listening.ts'
import { version } from '../../common/version.ts'
import { type ConfigSources, filesOf, type LoadedConfig, readConfig } from '../../config/load.ts'
import { checkShared, forProcess } from '../../config/processes.ts'
import type { Config } from '../../config/schema.ts'
import { watchFiles } from '../../config/watch.ts'
import type { Gateway } from '../../gateway.ts'
import type { Log, OpenLog } from '../../telemetry/log.ts'
import type { Serving } from './supervisor.ts'

type Given = { processes: number; process?: string; isChild?: true; movedClock?: string }

export const addServeCommand: AddTopCommand = (program, add, summary) =>
  add<Given>(program, 'serve', {
    summary,
    example: 'serve --config config/production.yaml',
    setUp: command =>
      command
        .option(
          '--processes <number>',
          'number of gateways that share server.port; ops.port and health.port count up',
          processesIn,
          1,
        )
        // How several processes are started, each with its number.
        .addOption(new Option('--process <number>').hideHelp())
        // How a demo starts its gateway, which then ends with the demo.
        .addOption(new Option('--is-child').hideHelp())
        // How a rehearsal starts its gateway: with the first instant of its clock, ms since the epoch.
        .addOption(new Option('--moved-clock <instant>').hideHelp()),
    run: async (terminal, given) => {
      const { processes, movedClock, isChild = given.process !== undefined } = given
      const number = given.process === undefined ? undefined : Number(given.process)
      const read = (): LoadedConfig => {
        const loaded = readConfig(terminal.sources)
        return number === undefined ? loaded : { ...loaded, config: forProcess(loaded.config, number) }
      }
      const loaded = read()
      const { config } = loaded
      const isAbove = processes > 1 && number === undefined
      // Before the log is opened: what is wrong is for the terminal.
      const check = isAbove
        ? await openShared(processes, () => readConfig(terminal.sources).config)
        : undefined
      // Imported here, so that the other commands start without the whole gateway.
      const { openLog } = await import('../../telemetry/log.ts')
      const opened = openLog(config.log.level, config.log.file, processes > 1, number)
      const warnOnce = createRemovedWarning(opened.log)
      if (number === undefined) warnOnce(loaded)
      let isExporting = false
      try {
        if (check) {
          const { supervise } = await import('./supervisor.ts')
          followLevel(opened.log, config, terminal.sources)
          return await supervise(processes, {
            args: process.argv.slice(2),
            log: opened.log,
            config,
            check,
            reopenLog: () => reopenLog(opened, config),
          })
        }
        onSignal('SIGUSR2', () => reopenLog(opened, config))
        const { clock, stopped, onServing } =
          movedClock === undefined
            ? onSystemClock(terminal.clock, opened.log, isChild)
            : await onMovedClock(Number(movedClock))
        const { startGateway } = await import('../../gateway.ts')
        const { openTracing } = await import('../../telemetry/tracing.ts')
        const { log } = opened
        const tracing = await openTracing(terminal.env, log, clock, config.tracing)
        const source = { read: () => warnOnce(read()), files: filesOf(terminal.sources) }
        const gateway = await startGateway(config, { ...opened, clock, source, tracing, processes })
        tuneCollector()
        onServing(gateway)
        onSignal('SIGHUP', () => reload(gateway, log))
        const signal = await stopped
        log.info({ signal }, 'stopping')
        await gateway.close()
        isExporting = (await tracing?.close()) === false
        log.info('stopped')
        return 0
      } finally {
        await opened.flush()
        // The channel would keep this process. With its end this process ends at once, whatever the log has still to write.
        if (movedClock !== undefined) process.disconnect?.()
        // Retries of an export would keep it too, and the exporter has no way to end them.
        if (isExporting) process.exit(0)
      }
    },
  })

/**
 * Checks that the processes can start, and returns that check for each restart. It tries the port without sharing first: processes of
 * another configuration that listen there would get a part of the requests.
 */
const openShared = async (processes: number, read: () => Config): Promise<() => Promise<Config>> => {
  // Its own processes may listen there by now.
  const own = new Set<number>()
  const check = async (): Promise<Config> => {
    const config = read()
    checkShared(config, processes)
    const { server } = config
    const fault = server.reusePort || own.has(server.port) ? undefined : await listenFault(server)
    if (fault) throw unusablePlace('server', server, fault)
    own.add(server.port)
    return config
  }
  await check()
  return check
}

/**
 * Has V8 collect all of the heap less often, and not judge by the first, cold requests what lives long. docs/decisions/processes.md
 * has the figures. On the command line these flags would have V8 compile Node's own code anew at each start.
 */
const tuneCollector = (): void => {
  setFlagsFromString('--heap-growing-percent=70')
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/** Warns once of each setting that no longer exists, and returns what it was given. */
const createRemovedWarning = (log: Log) => {
  const known = new Set<string>()
  return (loaded: LoadedConfig): LoadedConfig => {
    for (const { path, at, renamedTo } of loaded.removed) {
      if (!known.has(path) && renamedTo !== undefined)
        log.warn({ setting: path, renamedTo, ...at }, 'setting renamed')
      else if (!known.has(path)) log.warn({ setting: path, ...at }, 'setting removed, ignored')
      known.add(path)
    }
    return loaded
  }
}

/** Has the lines of the supervisor follow the level of the log, as those of its processes do. */
const followLevel = (log: Log, { config }: Config, sources: ConfigSources): void => {
  const watch = watchFiles({
    files: () => filesOf(sources),
    pollMs: config.pollEveryMs,
    onChange: async () => {
      try {
        log.level = readConfig(sources).config.log.level
      } catch {
        // The processes say what is wrong with a file.
      }
    },
  })
  onSignal('SIGHUP', () => void watch.readNow())
}

const reopenLog = ({ log, reopen }: OpenLog, { log: { file } }: Config): void => {
  try {
    reopen()
    log.info(file === null ? 'no log file to reopen' : 'log file reopened')
  } catch (error) {
    log.error({ reason: messageOf(error) }, 'log file not reopened, keeping the previous one')
  }
}

const reload = (gateway: Gateway, log: Log): void => {
  gateway.reloadCatalogue().then(
    () => log.info('catalogue reloaded'),
    error => log.error({ reason: messageOf(error) }, 'catalogue not reloaded'),
  )
  gateway.reloadConfig().then(outcome => {
    // The reload logs what it applied or refused.
    if (outcome === 'unchanged') log.info('configuration unchanged')
  })
}

type Service = { clock: Clock; stopped: Promise<string>; onServing(gateway: Gateway): void }

/** @param isChild whether the process that started this one is told when it serves, and takes it along when it ends */
const onSystemClock = (clock: Clock, log: Log, isChild: boolean): Service => ({
  clock,
  stopped: isChild ? Promise.race([interruption(), abandonment()]) : interruption(),
  onServing: ({ apiUrl, opsUrl, healthUrl }) => {
    logListening(log, { ops: opsUrl, health: healthUrl, api: apiUrl })
    if (isChild) process.send?.({ opsUrl } satisfies Serving)
  },
})

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
const onMovedClock = async (from: number): Promise<Service> => {
  const { createMovedClock } = await import('../../common/moved-clock.ts')
  const { takeCommands } = await import('../../common/moved-clock-commands.ts')
  const clock = createMovedClock(from)
  const onServing = ({ apiUrl, settled }: Gateway) => takeCommands(clock, { url: apiUrl, settled })
  return { clock, stopped: stopCommand(), onServing }
}

/** Logged at every level: who starts it on port 0 has to learn the addresses. */
const logListening = (log: Log, urls: Readonly<Record<string, string | undefined>>): void => {
  const always = log.child({}, { level: 'info' })
  for (const [listener, url] of Object.entries(urls))
    if (url !== undefined) always.info({ listener, url, version }, 'listening')
}
