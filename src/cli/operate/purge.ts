// `abohawa cache purge`: shows the price of a purge, and asks on a terminal before one that the budget can't carry. In a pipe it
// asks nothing.

import { factsText } from '../../command-line/tables.ts'
import { counted, numbered, type Terminal } from '../../command-line/terminal.ts'
import { asUsage } from '../../command-line/usage-error.ts'
import { type Calendar, createCalendar } from '../../common/calendar.ts'
import { printable } from '../../common/outside-text.ts'
import type { CacheAdmin, OrderedPurge } from '../../operate/cache-admin.ts'
import { areaTargetIn, targetIn } from '../../operate/cache-target.ts'
import type { PurgePrice, PurgeReport } from '../../operate/reports/purge-report.ts'
import { storeName } from '../../stores/open-store.ts'
import { openCommandStore } from '../administer.ts'
import { distance, localSecond } from './cell-text.ts'

export type PurgeOptions = {
  readonly area?: boolean
  readonly hard?: boolean
  readonly dryRun?: boolean
  readonly yes?: boolean
}

/** Resolves to the exit code: 1 where the answer was no. */
export const purgeFromHere = async (
  terminal: Terminal,
  open: (store: Awaited<ReturnType<typeof openCommandStore>>) => Promise<CacheAdmin>,
  of: string,
  { area = false, hard = false, dryRun = false, yes = false }: PurgeOptions,
): Promise<number> => {
  asUsage(() => (area ? areaTargetIn(of) : targetIn(of)))
  const config = terminal.config()
  const calendar = createCalendar(config.quota.timeZone)
  await using store = await openCommandStore(config, terminal.clock)
  const admin = await open(store)
  const order: OrderedPurge = { scope: of, area, hard }
  const price = await admin.pricePurge(order)
  const where = storeName(config)
  const ofPrice = priceFacts(price, terminal.clock.now(), calendar)
  if (dryRun) {
    terminal.show({ ...price, of, where }, `Nothing is purged: ${of}.\n${factsText(ofPrice)}`)
    return 0
  }
  if (price.refusedNow > 0 && !yes && isAsked(terminal)) {
    terminal.remark(`This purge costs more than the budget leaves: ${of}.`)
    for (const line of factsText(ofPrice).split('\n')) terminal.remark(line)
    if (!(await agreed('Purge anyway? [y/N] '))) {
      terminal.remark('Nothing was purged.')
      return 1
    }
  }
  const report = await admin.purge(order)
  terminal.show({ ...report, price, where }, purgeText(report, where, ofPrice))
  return 0
}

const isAsked = ({ json }: Terminal): boolean =>
  !json && process.stdin.isTTY === true && process.stdout.isTTY === true

const agreed = async (question: string): Promise<boolean> => {
  // Imported here, so that no other command waits for it.
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  try {
    // The end of the input, and Ctrl-C, are a no.
    const ended = new Promise<string>(resolve => lines.once('close', () => resolve('')))
    return /^\s*y(?:es)?\s*$/i.test(await Promise.race([lines.question(question), ended]))
  } finally {
    lines.close()
  }
}

/** The same figures as in the question of the dashboard. */
const priceFacts = (price: PurgePrice, now: number, calendar: Calendar): [string, string | undefined][] => {
  const { kind, cells, cached, weight, windows, closedUntil, fitsNow, refusedNow, oneKeyNow, reloadedAt } =
    price
  const timeOf = (iso: string) =>
    `${localSecond(Date.parse(iso), calendar)}, ${distance(Date.parse(iso) - now)}`
  const loads = numbered(cached, 'load', 'loads')
  const facts: [string, string | undefined][] = [
    ['cached', `${counted(cached)} of ${numbered(cells, 'cell', 'cells')}`],
    ['costs', `at most ${counted(weight)} of weight: ${loads}, if all of them are requested again`],
  ]
  if (cached === 0) return facts
  const limits = windows.map(
    ({ name, limit, left }) => `${counted(Math.floor(left))} of ${counted(Math.floor(limit))} of the ${name}`,
  )
  facts.push([
    'budget',
    limits.length === 0
      ? 'without limits'
      : `leaves ${limits.join(', ')}${kind === 'soft' ? ', beside the reserve for cells with nothing cached' : ''}`,
  ])
  if (closedUntil !== null) facts.push(['', `closed until ${timeOf(closedUntil)}`])
  if (price.fallbacks > 0)
    facts.push(['', 'only of the primary upstream: fallbacks load what it has no room for'])
  facts.push([
    'now',
    refusedNow === 0
      ? 'room for all of them'
      : `room for ${counted(fitsNow)}; ${counted(refusedNow)} ${kind === 'soft' ? 'stay stale until there is room' : 'have no weather until there is room'}`,
  ])
  if (oneKeyNow < cached)
    facts.push(['', `one key may load ${counted(oneKeyNow)} of them while others load too`])
  facts.push([
    'all loaded',
    reloadedAt === null
      ? 'never: a limit has no room for a cell'
      : Date.parse(reloadedAt) <= now
        ? 'by demand, as soon as they are requested'
        : `by demand, at the earliest ${timeOf(reloadedAt)}`,
  ])
  return facts
}

type Facts = readonly (readonly [string, string | undefined])[]

const purgeText = (report: PurgeReport, where: string, ofPrice: Facts): string => {
  const { kind, of, place, places, scope, cells, removed, store } = report
  const soft = kind === 'soft'
  const named = place ? printable(`${place.name} (${place.type} ${place.id})`) : ''
  const below = `${named} with all below it, ${numbered(places ?? 0, 'place', 'places')}`
  const what =
    'all' in scope
      ? 'everything'
      : 'cell' in scope
        ? `the cell ${scope.cell}${place ? ` of ${named}` : ''}`
        : 'area' in scope
          ? below
          : `the box ${of}`
  const [gone, then] = soft
    ? [
        'nothing removed; what is there counts as stale',
        'it is served as stale until it is reloaded; --hard removes it',
      ]
    : [`${numbered(removed, 'entry', 'entries')} removed`, 'the next request of a cell waits for its load']
  const facts = factsText([
    ['covers', numbered(cells, 'cell', 'cells')],
    ['shared tier', gone],
    ['', `${store}, ${where}`],
    ['gateways', 'running gateways apply it within a second'],
    ['', then],
    ...ofPrice,
  ])
  return `Purged ${soft ? 'softly' : 'hard'}: ${what}.\n${facts}`
}
