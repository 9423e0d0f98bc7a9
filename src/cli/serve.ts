// `abohawa serve`: runs the gateway until a signal ends it. Logs lines of JSON on standard output, or in `log.file`.

import type { Command } from 'commander'
import { filesOf, readConfig } from '../config/load.ts'
import { messageOf } from '../errors.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { interruption } from './interruption.ts'
import type { AddCommand } from './terminal.ts'

export const addServeCommand = (program: Command, add: AddCommand): void =>
  add(program, 'serve', {
    summary: 'run the gateway: the listeners for consumers, operators and probes',
    example: 'serve --config config/production.yaml',
    run: async ({ sources, clock, env }) => {
      const { config } = readConfig(sources)
      // Imported here, so that the other commands start without the whole gateway.
      const { openLog } = await import('../ops/log.ts')
      const { startGateway } = await import('../gateway/gateway.ts')
      const { inheritedSockets } = await import('../gateway/inherited-sockets.ts')
      const { openTracing } = await import('../ops/tracing.ts')
      const inherited = inheritedSockets(env, process.pid)
      const { log, lines, dropped, flush, reopen } = openLog(config.log.level, config.log.file)
      try {
        // Without a listener it would end the process.
        process.on('SIGUSR2', () => {
          try {
            reopen()
            log.info(config.log.file === null ? 'the log has no file to reopen' : 'log file reopened')
          } catch (error) {
            log.error({ reason: messageOf(error) }, 'log file not reopened, the former one stays in use')
          }
        })
        const stopped = interruption()
        let running: Gateway | undefined
        // Added first: without a listener SIGHUP would end the process.
        process.on('SIGHUP', () => {
          running?.reloadCatalogue().then(
            () => log.info('catalogue reloaded'),
            error => log.error({ reason: messageOf(error) }, 'catalogue not reloaded'),
          )
          running?.reloadConfig().then(outcome => {
            // What was applied or refused has a line of its own.
            if (outcome === 'unchanged') log.info('configuration unchanged')
          })
        })
        const tracing = await openTracing(env, log)
        const source = { read: () => readConfig(sources), files: filesOf(sources) }
        const gateway = await startGateway(config, { clock, log, lines, dropped, source, tracing, inherited })
        running = gateway
        // Logged at every level: who starts it on port 0 has to learn the address.
        const always = log.child({}, { level: 'info' })
        always.info({ listener: 'ops', url: gateway.opsUrl }, 'listening')
        if (gateway.statusUrl !== undefined)
          always.info({ listener: 'status', url: gateway.statusUrl }, 'listening')
        always.info({ listener: 'api', url: gateway.apiUrl }, 'listening')
        const signal = await stopped
        log.info({ signal }, 'stopping')
        await gateway.close()
        await tracing?.close()
        log.info('stopped')
        return 0
      } finally {
        await flush()
      }
    },
  })
