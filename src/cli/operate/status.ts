// `abohawa status`: the fleet on one screen. Queries the gateway at the ops address, which knows the most; without one reads from
// the store which instances are alive, the budget and the keys near their limit. `--watch` draws it anew every two seconds.

import { setTimeout as pause } from 'node:timers/promises'
import { createCalendar } from '../../common/calendar.ts'
import { messageOf } from '../../common/errors.ts'
import { jsonText, printable } from '../../common/outside-text.ts'
import { redactedUrl, redactedUrls } from '../../common/redacted-url.ts'
import type { Config } from '../../config/schema.ts'
import type { StatusReport } from '../../operate/listener/status-report.ts'
import { openUsedStore } from '../../stores/open-store.ts'
import { interruption } from '../interruption.ts'
import type { AddTopCommand, Terminal } from '../terminal.ts'
import { type AskedGateway, addGatewayOption, gatewayFor, queryGateway } from './gateway-query.ts'
import { paint, type StatusLine, statusLines } from './status-text.ts'

const drawEveryMs = 2_000

export const addStatusCommand: AddTopCommand = (program, add, summary) =>
  add<{ gateway?: string; watch?: boolean }>(program, 'status', {
    summary,
    example: 'status --watch',
    setUp: command =>
      void addGatewayOption(command).option(
        '-w, --watch',
        'redraw every 2 s until Ctrl-C; with --json print a line of JSON each time',
      ),
    run: async (terminal, { gateway, watch = false }) => {
      const { config, asked: query } = gatewayFor(terminal, gateway)
      if (watch) return watchStatus(terminal, config, query)
      const { report, opsUrl, remark } = await readStatus(terminal, config, query)
      if (remark !== undefined) terminal.remark(remark)
      const lines = linesOf(report, opsUrl, config)
      if (terminal.json) terminal.show({ opsUrl, ...report }, '')
      else terminal.write(`${screenText(terminal, lines)}\n`)
      if (report.store.isUp) return 0
      terminal.remark(`The store is away: ${report.store.fault ?? 'it does not answer'}.`)
      return 1
    },
  })

/** `opsUrl` is null for a report of the store alone. */
type Found = {
  readonly report: StatusReport
  readonly opsUrl: string | null
  readonly remark: string | undefined
}

/** @throws InputError, StoreError when neither a gateway nor the store answers */
const readStatus = async (terminal: Terminal, config: Config, query: AskedGateway): Promise<Found> => {
  const { address } = query
  const found = await queryGateway(
    { ...query, path: '/status' },
    async () => (await import('../../operate/listener/status-report.ts')).statusReport,
  )
  if ('report' in found) return { report: found.report, opsUrl: redactedUrl(address), remark: undefined }
  const { clock } = terminal
  // Of a broken file it throws: no command takes the default store in place of the configured one.
  terminal.config()
  // Imported here, so that the other commands start without the parts of a gateway.
  const { statusOfStore } = await import('../../operate/store-status.ts')
  const store = await openUsedStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
  try {
    return {
      report: await statusOfStore(config, store, clock),
      opsUrl: null,
      remark: `No gateway answered at ${redactedUrl(address)} (${found.unavailable}): this is what the store knows.`,
    }
  } finally {
    await store.close()
  }
}

const linesOf = (report: StatusReport, opsUrl: string | null, config: Config): StatusLine[] =>
  statusLines(report, opsUrl, createCalendar(config.quota.timeZone))

const screenText = ({ colours }: Terminal, lines: readonly StatusLine[]): string =>
  lines.map(line => (colours ? paint(line) : line.text)).join('\n')

const watchStatus = async (terminal: Terminal, config: Config, query: AskedGateway): Promise<number> => {
  const stopped = interruption('SIGHUP')
  const ending = new AbortController()
  void stopped.then(() => ending.abort())
  await using screen = openScreen(terminal)
  while (!ending.signal.aborted) {
    try {
      const { report, opsUrl, remark } = await readStatus(terminal, config, query)
      const lines = linesOf(report, opsUrl, config)
      if (remark !== undefined) lines.unshift({ text: printable(remark), tone: 'warn' })
      if (terminal.json) terminal.write(`${jsonText({ opsUrl, ...report })}\n`)
      else screen.draw(lines)
    } catch (error) {
      // It may be back with the next round.
      const sentence = redactedUrls(messageOf(error))
      if (terminal.json) terminal.remark(sentence)
      else screen.draw([{ text: printable(sentence), tone: 'bad' }])
    }
    await pause(drawEveryMs, undefined, { signal: ending.signal }).catch(() => {})
  }
  return 0
}

const toAlternateScreen = '\u001b[?1049h\u001b[?25l'
const fromAlternateScreen = '\u001b[?25h\u001b[?1049l'
const home = '\u001b[H'
const clearLine = '\u001b[K'
const clearBelow = '\u001b[J'

type Screen = AsyncDisposable & { draw(lines: readonly StatusLine[]): void }

/** The alternate screen of a terminal, until it is disposed of or the process ends; elsewhere plain lines, one under the other. */
const openScreen = (terminal: Terminal): Screen => {
  if (terminal.columns === undefined || terminal.json)
    return {
      draw: lines => terminal.write(`${lines.map(({ text }) => text).join('\n')}\n\n`),
      [Symbol.asyncDispose]: async () => {},
    }
  let isOpen = true
  const restore = (): void => {
    if (isOpen) terminal.write(fromAlternateScreen)
    isOpen = false
  }
  process.once('exit', restore)
  terminal.write(toAlternateScreen)
  return {
    draw: lines => {
      // A terminal that does not know its size says 0.
      const [columns, rows] = [terminal.columns || 80, terminal.rows || 24]
      const shown = lines.slice(0, rows).map(line => ({ ...line, text: line.text.slice(0, columns) }))
      const drawn = shown.map(line => (terminal.colours ? paint(line) : line.text) + clearLine)
      terminal.write(home + drawn.join('\n') + clearBelow)
    },
    [Symbol.asyncDispose]: async () => restore(),
  }
}
