// `abohawa subscribers …`: lists, revokes and reinstates subscribers, the holders of keys, by id or name.
// metering/administration.ts does the work.

import type { Administration, ListedSubscriber } from '../../metering/administration.ts'
import { administer } from '../administer.ts'
import { type AddTopCommand, tableOf } from '../terminal.ts'

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

  const oneSubscriber = (
    name: string,
    summary: string,
    act: (administration: Administration, idOrName: string) => Promise<ListedSubscriber>,
  ) =>
    add(subscribers, name, {
      summary,
      example: `subscribers ${name} "Dhaka Tribune"`,
      setUp: command => command.argument('<id or name>', 'id or name of the subscriber'),
      run: (terminal, _options, idOrName = '') =>
        administer(terminal, async (administration, store) => {
          const subscriber = await act(administration, idOrName)
          terminal.show({ ...subscriber, store }, subscriberTable([subscriber]))
        }),
    })
  oneSubscriber('revoke', 'refuse all keys of a subscriber from now on', (administration, idOrName) =>
    administration.revokeSubscriber(idOrName),
  )
  oneSubscriber('reinstate', 'accept the keys of a revoked subscriber again', (administration, idOrName) =>
    administration.reinstateSubscriber(idOrName),
  )
}

/** The number of keys in the list alone: it takes a walk over the keys of all. */
const subscriberTable = (subscribers: readonly (ListedSubscriber & { readonly keys?: number })[]): string => {
  const isCounted = subscribers.every(({ keys }) => keys !== undefined)
  return tableOf(
    ['id', 'name', ...(isCounted ? ['keys'] : []), 'status', 'created (UTC)'],
    subscribers.map(({ id, name, keys, status, createdAt }) => [
      id,
      name,
      ...(isCounted ? [String(keys)] : []),
      status,
      createdAt.slice(0, 16).replace('T', ' '),
    ]),
  )
}
