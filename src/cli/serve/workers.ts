// `abohawa workers …`: the worker processes of a gateway with `server.workers`, and their restart, one after the other, for a
// new version of the product or settings that need one. The process that started them answers.

import * as z from 'zod'
import { InputError } from '../../errors.ts'
import { distance } from '../operate/cell-text.ts'
import { addGatewayOption, gatewayFor, queryGateway } from '../operate/gateway-query.ts'
import { type AddTopCommand, type Terminal, tableOf } from '../terminal.ts'

const report = z.object({
  workers: z.array(
    z.object({
      number: z.number(),
      pid: z.number(),
      isReady: z.boolean(),
      // A gateway of an earlier version does not say.
      isResponding: z.boolean().default(true),
      startedAt: z.iso.datetime(),
    }),
  ),
})

type Given = { readonly gateway?: string }

export const addWorkerCommands: AddTopCommand = (program, add, summary) => {
  const workers = program
    .command('workers')
    .summary(summary)
    .description('Worker processes, where server.workers is more than 1.')

  add<Given>(workers, 'list', {
    summary: 'list the worker processes of a gateway',
    example: 'workers list',
    setUp: command => void addGatewayOption(command),
    run: async (terminal, { gateway }) => {
      show(terminal, await query(terminal, gateway, 'GET', '/workers'))
      return 0
    },
  })

  add<Given>(workers, 'restart', {
    summary: 'replace each worker by a new process, one at a time, without losing a request',
    example: 'workers restart',
    setUp: command => void addGatewayOption(command),
    run: async (terminal, { gateway }) => {
      show(terminal, await query(terminal, gateway, 'POST', '/workers/restart'))
      terminal.remark('The restart has begun; `abohawa workers list` shows how far it is.')
      return 0
    },
  })
}

const query = async (
  terminal: Terminal,
  gateway: string | undefined,
  method: 'GET' | 'POST',
  path: string,
): Promise<z.infer<typeof report>> => {
  const { asked } = gatewayFor(terminal, gateway)
  // Whether it is named or not: without an answer there is no report, and the sentence below says what that may mean.
  const found = await queryGateway({ ...asked, isNamed: false, path, method }, async () => report)
  if ('report' in found) return found.report
  throw new InputError(
    `the workers of the gateway at ${asked.address} are not known: ${found.unavailable}; only one with server.workers above 1 has any`,
  )
}

const show = (terminal: Terminal, { workers }: z.infer<typeof report>): void =>
  terminal.show(
    { workers },
    tableOf(
      ['worker', 'pid', 'state', 'started'],
      workers.map(({ number, pid, isReady, isResponding, startedAt }) => [
        String(number),
        String(pid),
        isReady ? 'ready' : isResponding ? 'starting' : 'not responding',
        distance(Date.parse(startedAt) - terminal.clock.now()),
      ]),
      [0, 1],
    ),
  )
