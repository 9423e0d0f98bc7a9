// What is known of a key at a minute: from the store, a running gateway and access logs.

import { type AskedGateway, gatewayFor, queryGateway } from '../../command-line/gateway-query.ts'
import type { Terminal } from '../../command-line/terminal.ts'
import { asUsage } from '../../command-line/usage-error.ts'
import { createCalendar, isoOf } from '../../common/calendar.ts'
import { InputError } from '../../common/errors.ts'
import { nameOfFile, openBytes, UnpackingError } from '../../common/file-bytes.ts'
import { logFieldsOf, readLines } from '../../common/text-lines.ts'
import type { Config } from '../../config/schema.ts'
import { type Administration, createAdministration } from '../../keys/administration.ts'
import { tiersOf } from '../../keys/test-keys.ts'
import { cellsLoaded } from '../../keys/usage-detail.ts'
import { createLogTally, keyAt, type LogReport, type Moment, momentIn } from '../../operate/key-why.ts'
import { statusReport } from '../../operate/reports/status-report.ts'
import { openUsedStore, storeName } from '../../stores/open-store.ts'
import type { Store } from '../../stores/store.ts'
import { openCommandStore, withStoreName } from '../administer.ts'

export type WhyOptions = { readonly at: string; readonly log?: string[]; readonly gateway?: string }

/** All that is known, and the store that it is known of. */
export type KeyWhy = Awaited<ReturnType<typeof known>> & {
  readonly logs: readonly (LogReport & { readonly file: string })[]
  readonly gateway: Awaited<ReturnType<typeof askedGateway>>
  readonly timeZone: string
  readonly store: string
}

/** @throws InputError, StoreError */
export const whyOf = async (terminal: Terminal, given: string, options: WhyOptions): Promise<KeyWhy> => {
  const { at, log: files = [], gateway } = options
  const config = terminal.config()
  const { asked } = gatewayFor(terminal, gateway)
  const calendar = createCalendar(config.quota.timeZone)
  const moment = asUsage(() => momentIn(at, calendar, terminal.clock.now()))
  const where = storeName(config)
  await using store = await openCommandStore(config, terminal.clock, openUsedStore)
  const tiers = tiersOf(config.quota)
  const { showKey } = createAdministration({ store, tiers, calendar, clock: terminal.clock })
  const ofStore = await known(store, showKey, given, moment, config).catch(withStoreName(where))
  const logs: KeyWhy['logs'][number][] = []
  for (const file of files) logs.push({ file, ...(await readLog(file, ofStore.key.id, moment, config)) })
  const { zone: timeZone } = calendar
  return { ...ofStore, logs, gateway: await askedGateway(asked, moment), timeZone, store: where }
}

const known = async (
  store: Store,
  showKey: Administration['showKey'],
  given: string,
  moment: Moment,
  { quota: { timeZone } }: Config,
) => {
  const shown = await showKey(given)
  const record = await store.findKey(shown.id)
  if (!record) throw new InputError(`the key ${shown.id} is no more`)
  const day = createCalendar(timeZone).dayOf(moment.at)
  const [subscriber, [used = 0], responses] = await Promise.all([
    store.findSubscriber(record.subscriberId),
    store.usedOn(shown.id, [day]),
    store.detailOn(shown.id, day),
  ])
  return {
    at: isoOf(moment.at),
    end: isoOf(moment.end),
    from: isoOf(moment.from),
    until: isoOf(moment.until),
    /** As it is now. */
    key: shown,
    keyThen: keyAt(record, subscriber, moment),
    day: {
      day,
      used,
      responses: responses.filter(({ endpoint }) => endpoint !== cellsLoaded),
      cellsLoaded: responses.find(({ endpoint }) => endpoint === cellsLoaded)?.count ?? 0,
    },
  }
}

/** What a running gateway has of this time; null where none answers. A gateway need not run. */
const askedGateway = async (asked: AskedGateway, moment: Moment) => {
  const readSchema = async () => statusReport.pick({ outages: true, history: true })
  const found = await queryGateway({ ...asked, path: '/status' }, readSchema).catch((error: unknown) => {
    // One that refuses says nothing, unless it was named.
    if (asked.isNamed) throw error
    return undefined
  })
  if (!found || !('report' in found)) return null
  const { outages, history } = found.report
  const stepMs = (history?.stepSeconds ?? 0) * 1000
  const begins = Date.parse(history?.endsAt ?? '') - (history?.errorsPerSecond.length ?? 0) * stepMs
  const steps = (history?.errorsPerSecond ?? []).filter((_, i) => {
    const stepAt = begins + i * stepMs
    return stepAt + stepMs > moment.from && stepAt < moment.until
  })
  return {
    opsUrl: asked.opsUrl,
    outages: (outages ?? []).filter(({ since }) => Date.parse(since) < moment.until),
    /** Of all keys, answered with 500 by this gateway; null where its history does not reach that far. */
    errors: steps.some(each => each !== null)
      ? Math.round(steps.reduce<number>((sum, each) => sum + ((each ?? 0) * stepMs) / 1000, 0))
      : null,
  }
}

const readLog = async (file: string, keyId: string, moment: Moment, config: Config): Promise<LogReport> => {
  const tally = createLogTally(keyId, moment, createCalendar(config.quota.timeZone))
  const name = nameOfFile(file)
  // What is no line of the log is passed over, as lines of other programs are.
  const onFault = (_line: number, fault: unknown): void => {
    if (!(fault instanceof InputError)) throw fault
  }
  const reading = { found: { skippedLines: 0 }, onFault }
  const readLine = (line: string): undefined => {
    if (tally.isWanted(line)) tally.read(logFieldsOf(line))
  }
  try {
    for await (const _ of readLines(openBytes(file).chunks, reading, readLine));
  } catch (cause) {
    throw cause instanceof UnpackingError ? new InputError(`${name}: ${cause.message}`, { cause }) : cause
  }
  const report = tally.report()
  if (report.lastAt === null) throw new InputError(`${name} has no line of a gateway's log`)
  return report
}
