// `abohawa budget …`: shows what is spent of the provider's limits, and reopens the budget after a limit that the provider
// reported wrongly. Both work on the store alone, without a running gateway.

import type { BudgetAdmin, BudgetReport, ReopenReport } from '../../admin/budget-admin.ts'
import type { Config } from '../../config/schema.ts'
import { printable } from '../../outside-text.ts'
import { redactedUrl } from '../../redacted-url.ts'
import { openUsedStore, storeName } from '../../stores/open-store.ts'
import {
  type AddTopCommand,
  counted,
  factsText,
  indented,
  percentText,
  type Terminal,
  tableOf,
} from '../terminal.ts'
import { distance } from './cell-text.ts'

// Where the store is, the account, and its limits.
const needed = ['redis', 'store', 'provider.baseUrl', 'provider.apiKey', 'provider.budget']

export const addBudgetCommands: AddTopCommand = (program, add, summary) => {
  const budget = program
    .command('budget')
    .summary(summary)
    .description("The budget for the provider's limits, which all gateways of an account share.")

  add(budget, 'show', {
    summary: 'show what is used and left of each limit, and until when the budget is closed',
    example: 'budget show',
    run: async terminal => {
      const config = terminal.configFor(needed)
      const report = await withBudgetAdmin(terminal, config, admin => admin.show())
      const shared = config.redis.url !== null
      terminal.show({ ...report, shared, where: storeName(config) }, reportText(report, config))
      return 0
    },
  })

  add(budget, 'reopen', {
    summary: 'end the closure after a 429 of the provider, in every running gateway within seconds',
    example: 'budget reopen',
    run: async terminal => {
      const config = terminal.configFor(needed)
      const report = await withBudgetAdmin(terminal, config, admin => admin.reopen())
      terminal.show({ ...report, where: storeName(config) }, reopenText(report, storeName(config)))
      return 0
    },
  })
}

/** Opens the budget admin on the configured store for one action. */
const withBudgetAdmin = async <Result>(
  { clock }: Terminal,
  config: Config,
  act: (admin: BudgetAdmin) => Promise<Result>,
): Promise<Result> => {
  // Imported here, so that the other commands start without the parts of a gateway.
  const { createBudgetAdmin } = await import('../../admin/budget-admin.ts')
  const store = await openUsedStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
  try {
    return await act(createBudgetAdmin(config, { store, clock }))
  } finally {
    await store.close()
  }
}

const reportText = (report: BudgetReport, config: Config): string => {
  const { at, account, closedUntil, reason, reopenedAt, windows, reserve } = report
  const now = Date.parse(at)
  const timeOf = (iso: string): string => `${secondOf(iso)}, ${distance(Date.parse(iso) - now)}`
  const state =
    closedUntil === null
      ? 'Open.'
      : `Closed until ${timeOf(closedUntil)}: ${printable(reason ?? 'a limit of the provider is reached').replace(/\.$/, '')}.`
  const shared =
    config.redis.url === null
      ? 'by this gateway alone, in its own store'
      : 'by all gateways of this account on this store'
  const facts: [string, string][] = [
    ['provider', `${redactedUrl(config.provider.baseUrl)}, account ${account}`],
    ['counted', shared],
    ['', storeName(config)],
    ['reserve', `${percentText(reserve)} of each limit is kept for cells with nothing cached`],
  ]
  if (windows.some(({ aside }) => aside > 0))
    facts.push([
      'aside',
      `${percentText(config.provider.budget.outageShare)} of each limit is set aside for gateways without the store, and not in these limits`,
    ])
  if (reopenedAt !== null) facts.push(['reopened', timeOf(reopenedAt)])
  return [
    state,
    windows.length === 0
      ? '  No limits are configured (provider.budget).'
      : indented(
          tableOf(
            ['window', 'limit', 'used', 'left', 'resets (UTC)'],
            windows.map(({ name, limit, used, left, resetsAt }) => [
              name,
              counted(limit),
              counted(used),
              counted(left),
              timeOf(resetsAt),
            ]),
            [1, 2, 3],
          ),
        ),
    factsText(facts),
  ].join('\n')
}

const reopenText = ({ at, account, closedUntil, reason }: ReopenReport, where: string): string => {
  if (closedUntil === null)
    return [
      'Nothing was closed: the budget is open in the store.',
      factsText([
        ['account', account],
        ['store', where],
        [
          'gateways',
          'one that the store does not know to be closed, because it was away, opens within seconds',
        ],
        // The account is that of the files; where the host is another one too it waits for the restart.
        ['', 'those that started before provider.baseUrl was changed'],
        ['', 'use the former account until they restart'],
      ]),
    ].join('\n')
  return [
    `Reopened: it was closed until ${secondOf(closedUntil)} UTC (${distance(Date.parse(closedUntil) - Date.parse(at))}).`,
    factsText([
      ...(reason === null ? [] : [['because', printable(reason)] as [string, string]]),
      ['account', account],
      ['store', where],
      ['gateways', 'running gateways follow within seconds, and fetch again what the limit held back'],
      ['', 'if the provider answers 429 again, they close again'],
    ]),
  ].join('\n')
}

const secondOf = (iso: string): string => iso.slice(0, 19).replace('T', ' ')
