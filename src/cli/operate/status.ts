// `abohawa status`: the fleet on one screen, from a running gateway or else from the store. `--watch` redraws it every two
// seconds.

import { setTimeout as pause } from 'node:timers/promises'
import { addGatewayOption, gatewayFor, reportOf } from '../../command-line/gateway-query.ts'
import { stoppedBySignal } from '../../command-line/interruption.ts'
import type { AddTopCommand, Terminal } from '../../command-line/terminal.ts'
import { createCalendar } from '../../common/calendar.ts'
import { messageOf } from '../../common/errors.ts'
import { jsonText, printable } from '../../common/outside-text.ts'
import { redactedUrls } from '../../common/redacted-url.ts'
import type { StatusReport } from '../../operate/reports/status-report.ts'
import { openCommandStore } from '../administer.ts'
import { paint, type StatusLine, statusLines } from './status-text.ts'

const drawEveryMs = 2_000

export const addStatusCommand: AddTopCommand = (program, add, summary) =>
  add<{ gateway?: string; watch?: boolean }>(program, 'status', {
    summary,
    example: 'status --watch',
    setUp: command =>
      void addGatewayOption(command).option(
        '-w, --watch',
        'redraw every 2 s until Ctrl-C; with --json print a line each time',
      ),
    run: async (terminal, { gateway, watch = false }) => {
      const source = gatewayFor(terminal, gateway)
      if (watch) return watchStatus(terminal, source)
      const { report, opsUrl, remark, lines } = await readStatus(terminal, source)
      if (remark !== undefined) terminal.remark(remark)
      if (terminal.json) terminal.show({ opsUrl, ...report }, '')
      else terminal.write(`${lines.map(line => painted(terminal, line)).join('\n')}\n`)
      if (report.store.isUp) return 0
      terminal.remark(`The store is unavailable: ${report.store.fault ?? 'it does not answer'}.`)
      return 1
    },
  })

type Source = ReturnType<typeof gatewayFor>

/** @throws InputError, StoreError when neither a gateway nor the store answers */
const readStatus = async (terminal: Terminal, source: Source) => {
  const { config } = source
  const found = await reportOf<StatusReport>(
    terminal,
    source.asked,
    '/status',
    async () => (await import('../../operate/reports/status-report.ts')).statusReport,
    'what the store knows',
    async () => {
      await using store = await openCommandStore(config, terminal.clock)
      // Imported here, so that the other commands start without the parts of a gateway.
      const { statusOfStore } = await import('../../operate/store-status.ts')
      return await statusOfStore(config, store, terminal.clock)
    },
  )
  const lines = statusLines(found.report, found.opsUrl, createCalendar(config.quota.timeZone))
  return { ...found, lines }
}

const painted = ({ colours }: Terminal, line: StatusLine): string => (colours ? paint(line) : line.text)

const watchStatus = async (terminal: Terminal, source: Source): Promise<number> => {
  const { signal } = stoppedBySignal()
  const draw = openScreen(terminal)
  while (!signal.aborted) {
    try {
      const { report, opsUrl, remark, lines } = await readStatus(terminal, source)
      if (remark !== undefined) lines.unshift({ text: printable(remark), tone: 'warn' })
      if (terminal.json) terminal.write(`${jsonText({ opsUrl, ...report })}\n`)
      else draw(lines)
    } catch (error) {
      // It may be back with the next round.
      const sentence = redactedUrls(messageOf(error))
      if (terminal.json) terminal.remark(sentence)
      else draw([{ text: printable(sentence), tone: 'bad' }])
    }
    await pause(drawEveryMs, undefined, { signal }).catch(() => {})
  }
  return 0
}

const toAlternateScreen = '\u001b[?1049h\u001b[?25l'
const fromAlternateScreen = '\u001b[?25h\u001b[?1049l'
const home = '\u001b[H'
const clearLine = '\u001b[K'
const clearBelow = '\u001b[J'

/** Draws on the alternate screen of a terminal, until the process ends; elsewhere plain lines, one under the other. */
const openScreen = (terminal: Terminal): ((lines: readonly StatusLine[]) => void) => {
  const { columns, controls, json, write } = terminal
  if (columns === undefined || !controls || json)
    return lines => write(`${lines.map(({ text }) => text).join('\n')}\n\n`)
  process.once('exit', () => write(fromAlternateScreen))
  write(toAlternateScreen)
  return lines => {
    // A terminal that does not know its size says 0.
    const [columns, rows] = [terminal.columns || 80, terminal.rows || 24]
    const shown = lines.slice(0, rows).map(line => ({ ...line, text: line.text.slice(0, columns) }))
    write(home + shown.map(line => painted(terminal, line) + clearLine).join('\n') + clearBelow)
  }
}
