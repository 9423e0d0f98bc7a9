// `abohawa serve`: runs the gateway until a signal ends it, in this process or in several workers. Logs lines of JSON on
// standard output, or in `log.file`.

import { Option } from 'commander'
import { filesOf, readConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { InputError, messageOf } from '../../errors.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Log, OpenLog } from '../../telemetry/log.ts'
import { version } from '../../version.ts'
import { configurationInEffect, type InEffect, sendHeartbeats, sendToFirst } from '../../workers/channel.ts'
import { interruption, onSignal, stopCommand } from '../interruption.ts'
import type { AddTopCommand, Terminal } from '../terminal.ts'

export const addServeCommand: AddTopCommand = (program, add, summary) =>
  add<{ worker?: string; workerNumber?: string; movedClock?: string }>(program, 'serve', {
    summary,
    example: 'serve --config config/production.yaml',
    setUp: command => {
      // How a process with several workers starts each of them.
      command.addOption(new Option('--worker <socket>').hideHelp())
      command.addOption(new Option('--worker-number <number>').hideHelp())
      // How a rehearsal starts its gateway: with the first instant of its clock, ms since the epoch.
      command.addOption(new Option('--moved-clock <instant>').hideHelp())
    },
    run: async (terminal, { worker, workerNumber, movedClock }) => {
      if (worker !== undefined) sendHeartbeats()
      const loaded = worker === undefined ? readConfig(terminal.sources) : await configurationInEffect()
      const { config } = loaded
      // Imported here, so that the other commands start without the whole gateway.
      const { openLog } = await import('../../telemetry/log.ts')
      const opened = openLog(
        config.log.level,
        config.log.file,
        config.server.workers > 1,
        workerNumber === undefined ? undefined : Number(workerNumber),
      )
      try {
        const byWorkers = worker === undefined && movedClock === undefined && config.server.workers > 1
        if (!byWorkers) onSignal('SIGUSR2', () => reopenLog(opened, config))
        if (worker !== undefined) await serveAsWorker(terminal, loaded, opened, worker)
        else if (movedClock !== undefined)
          await serveOnMovedClock(terminal, loaded, opened, Number(movedClock))
        else if (byWorkers) await serveByWorkers(terminal, loaded, opened)
        else await serveAlone(terminal, loaded, opened)
        return 0
      } finally {
        await opened.flush()
        // The channel would keep this process. With its end this process ends at once, whatever the log has still to write.
        if (worker !== undefined || movedClock !== undefined) process.disconnect?.()
      }
    },
  })

const reopenLog = ({ log, reopen }: OpenLog, { log: { file } }: Config): void => {
  try {
    reopen()
    log.info(file === null ? 'the log has no file to reopen' : 'log file reopened')
  } catch (error) {
    log.error({ reason: messageOf(error) }, 'log file not reopened, the former one stays in use')
  }
}

const serveAlone = async (terminal: Terminal, loaded: InEffect, opened: OpenLog): Promise<void> => {
  const stopped = interruption()
  await serveUntil(terminal, loaded, opened, stopped, undefined, ({ apiUrl, opsUrl, healthUrl }) =>
    logListening(opened.log, { ops: opsUrl, health: healthUrl, api: apiUrl }),
  )
}

/** In a process that another one has started, and that operators reach through it. */
const serveAsWorker = async (
  terminal: Terminal,
  loaded: InEffect,
  opened: OpenLog,
  opsPath: string,
): Promise<void> => {
  await serveUntil(terminal, loaded, opened, stopCommand(), opsPath, ({ apiUrl }) =>
    sendToFirst({ ready: { apiUrl } }),
  )
}

/** In a process whose clock another one moves. */
const serveOnMovedClock = async (
  terminal: Terminal,
  loaded: InEffect,
  opened: OpenLog,
  start: number,
): Promise<void> => {
  const { createMovedClock } = await import('../../load/rehearsal/moved-clock.ts')
  const { takeCommands } = await import('../../load/rehearsal/commands.ts')
  const clock = createMovedClock(start)
  await serveUntil({ ...terminal, clock }, loaded, opened, stopCommand(), undefined, ({ apiUrl, settled }) =>
    takeCommands(clock, { url: apiUrl, settled }),
  )
}

/** Runs a gateway in this process. @param opsPath the Unix socket of the ops listener, in place of its address */
const serveUntil = async (
  { sources, clock, env }: Terminal,
  { config, ticketKey }: InEffect & { readonly ticketKey?: Buffer },
  { log, lines, dropped }: OpenLog,
  stopped: Promise<string>,
  opsPath: string | undefined,
  onServing: (gateway: Gateway) => void,
): Promise<void> => {
  const { startGateway } = await import('../../gateway/gateway.ts')
  const { inheritedSockets } = await import('../../gateway/inherited-sockets.ts')
  const { openTracing } = await import('../../telemetry/tracing.ts')
  const inherited = inheritedSockets(env, process.pid)
  const tracing = await openTracing(env, log)
  const source = { read: () => readConfig(sources), files: filesOf(sources) }
  const gateway = await startGateway(config, {
    clock,
    log,
    lines,
    dropped,
    source,
    tracing,
    opsPath,
    inherited,
    ticketKey,
  })
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

const serveByWorkers = async (
  { sources, clock, env }: Terminal,
  { config }: InEffect,
  opened: OpenLog,
): Promise<void> => {
  const { log } = opened
  const stopped = interruption()
  const { inheritedSockets } = await import('../../gateway/inherited-sockets.ts')
  if (Object.keys(inheritedSockets(env, process.pid)).length > 0)
    throw new InputError(
      `server.workers is ${config.server.workers}, but this process inherits sockets (LISTEN_FDS), which one worker alone can listen on: set server.workers to 1, or pass no sockets`,
    )
  const { startWorkers } = await import('../../workers/serve-workers.ts')
  const workers = await startWorkers(config, {
    clock,
    log,
    args: process.argv.slice(2),
    read: () => readConfig(sources),
    files: filesOf(sources),
  })
  onSignal('SIGHUP', workers.signal)
  // One that came while the workers started is kept until here, for all of them.
  onSignal('SIGUSR2', signal => {
    reopenLog(opened, config)
    workers.signal(signal)
  })
  logListening(log, { ops: workers.opsUrl, health: workers.healthUrl, api: workers.apiUrl })
  const signal = await stopped
  log.info({ signal }, 'stopping')
  await workers.close()
  log.info('stopped')
}

/** Logged at every level: who starts it on port 0 has to learn the addresses. */
const logListening = (log: Log, urls: Readonly<Record<string, string | undefined>>): void => {
  const always = log.child({}, { level: 'info' })
  for (const [listener, url] of Object.entries(urls))
    if (url !== undefined) always.info({ listener, url, version }, 'listening')
}
