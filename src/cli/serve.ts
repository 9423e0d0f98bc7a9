// `abohawa serve`: the gateway until a signal ends it. Everything it says is a line of JSON on standard output.

import type { Command } from 'commander'
import { messageOf } from '../errors.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { interruption } from './interruption.ts'
import type { AddCommand } from './terminal.ts'

export const addServeCommand = (program: Command, add: AddCommand): void =>
  add(program, 'serve', {
    summary: 'run the gateway: the API listener and the ops listener',
    example: 'serve --config config/production.yaml',
    run: async ({ config: read, clock }) => {
      const config = read()
      // Loaded here, so that the other commands start without the whole gateway.
      const { openLog } = await import('../ops/log.ts')
      const { startGateway } = await import('../gateway/gateway.ts')
      const { log, lines, dropped, flush } = openLog(config.log.level)
      try {
        const stopped = interruption()
        let running: Gateway | undefined
        // From the start: without a listener, the signal would end the process.
        process.on('SIGHUP', () => {
          running?.reloadCatalogue().then(
            () => log.info('catalogue read again'),
            error => log.error({ reason: messageOf(error) }, 'catalogue not read again'),
          )
          try {
            read()
          } catch (error) {
            log.error(
              { reason: messageOf(error) },
              'the configuration has a fault; the next start will refuse it',
            )
          }
        })
        const gateway = await startGateway(config, { clock, log, lines, dropped })
        running = gateway
        // Whoever started it on a free port has to learn the address, however little else is logged.
        const always = log.child({}, { level: 'info' })
        always.info({ listener: 'ops', url: gateway.opsUrl }, 'listening')
        always.info({ listener: 'api', url: gateway.apiUrl }, 'listening')
        const signal = await stopped
        log.info({ signal }, 'stopping')
        await gateway.close()
        log.info('stopped')
        return 0
      } finally {
        await flush()
      }
    },
  })
