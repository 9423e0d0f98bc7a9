// `abohawa budget reopen`: reopens a budget that the provider closed wrongly. It needs only the store.

import { factsText } from '../../command-line/tables.ts'
import type { AddTopCommand } from '../../command-line/terminal.ts'
import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import type { Config } from '../../config/schema.ts'
import { upstreamsIn } from '../../config/upstreams.ts'
import { createBudgetAdmin, type ReopenReport } from '../../operate/budget-admin.ts'
import { storeName } from '../../stores/open-store.ts'
import { openCommandStore } from '../administer.ts'
import { distance } from './cell-text.ts'

// Where the store is, the account, and its limits.
export const addBudgetCommands: AddTopCommand = (program, add, summary) => {
  const budget = program
    .command('budget')
    .summary(summary)
    .description("The budget for the provider's limits, which all gateways of an account share.")

  add<{ upstream?: string }>(budget, 'reopen', {
    summary: 'end the closure after a 429 of the provider, in the whole fleet',
    example: 'budget reopen',
    setUp: command => void command.option('--upstream <name>', 'name of the upstream (default: the primary)'),
    run: async (terminal, { upstream }) => {
      const config = upstreamNamed(terminal.config(), upstream)
      const { clock } = terminal
      const where = storeName(config)
      await using store = await openCommandStore(config, clock)
      const report = await createBudgetAdmin(config, { store, clock }).reopen()
      terminal.show({ ...report, where }, reopenText(report, where))
    },
  })
}

/** The configuration of an upstream. @throws InputError for a name that none has */
const upstreamNamed = (config: Config, name: string | undefined): Config => {
  const upstreams = upstreamsIn(config)
  const found = name === undefined ? upstreams[0] : upstreams.find(each => each.name === name)
  if (found) return found.config
  const names = upstreams.map(each => each.name).join(', ')
  throw new InputError(`--upstream must be one of ${names}, got ${quoted(name ?? '')}`)
}

const reopenText = ({ at, account, closedUntil, reason }: ReopenReport, where: string): string => {
  if (closedUntil === null)
    return `The budget is not closed in the store.\n${factsText([
      ['account', account],
      ['store', where],
      ['gateways', 'one that was disconnected from the store follows within seconds'],
      // The account of the config files; gateways use a new host only after a restart.
      ['', 'those that started before provider.baseUrl was changed'],
      ['', 'use the previous account until they restart'],
    ])}`
  const until = closedUntil.slice(0, 19).replace('T', ' ')
  const away = distance(Date.parse(closedUntil) - Date.parse(at))
  return `Reopened: it was closed until ${until} UTC (${away}).\n${factsText([
    ['because', reason ?? undefined],
    ['account', account],
    ['store', where],
    ['gateways', 'running gateways follow within seconds, and fetch again what the limit held back'],
    ['', 'if the provider answers 429 again, they close again'],
  ])}`
}
