// `abohawa subscribers …`: lists and revokes subscribers, the holders of keys, by id or name.

import { tableOf } from '../../command-line/tables.ts'
import type { AddTopCommand } from '../../command-line/terminal.ts'
import type { ListedSubscriber } from '../../keys/administration.ts'
import { administer } from '../administer.ts'
import { minuteText } from './key-table.ts'

export const addSubscriberCommands: AddTopCommand = (program, add, summary) => {
  const subscribers = program
    .command('subscribers')
    .summary(summary)
    .description('Subscribers: revoking one refuses all of its keys.')

  add(subscribers, 'list', {
    summary: 'list all subscribers',
    example: 'subscribers list',
    run: terminal =>
      administer(terminal, async (administration, store) => {
        const all = await administration.listSubscribers()
        terminal.show(
          all,
          all.length === 0 ? `There is no subscriber yet in ${store}.` : subscriberTable(all),
        )
      }),
  })

  add<{ undo?: boolean }>(subscribers, 'revoke', {
    summary: 'revoke all keys of a subscriber, or accept them again with --undo',
    example: 'subscribers revoke "Dhaka Tribune"',
    setUp: command =>
      command
        .argument('<id or name>', 'id or name of the subscriber')
        .option('--undo', 'accept the keys of a revoked subscriber again'),
    run: (terminal, { undo = false }, idOrName = '') =>
      administer(terminal, async (administration, store) => {
        const act = undo ? administration.reinstateSubscriber : administration.revokeSubscriber
        const subscriber = await act(idOrName)
        terminal.show({ ...subscriber, store }, subscriberTable([subscriber]))
      }),
  })
}

/** Key counts are only in the list, because they take a walk over all keys. */
const subscriberTable = (subscribers: readonly (ListedSubscriber & { readonly keys?: number })[]): string => {
  const isCounted = subscribers.every(({ keys }) => keys !== undefined)
  return tableOf(
    ['id', 'name', ...(isCounted ? ['keys'] : []), 'status', 'created (UTC)'],
    subscribers.map(({ id, name, keys, status, createdAt }) => [
      id,
      name,
      ...(isCounted ? [String(keys)] : []),
      status,
      minuteText(createdAt),
    ]),
  )
}
