// The status page as the API listener serves it: HTML in two languages, and JSON. Made anew when some seconds have passed
// and something it shows has changed, however many ask; kept with its encodings until then.

import type { Clock } from '../common/clock.ts'
import { createFigures, type Figures, type Language } from '../common/page/figures.js'
import type { ServiceStatus } from '../telemetry/service-status.ts'
import type { Representation } from './endpoint.ts'
import { jsonType } from './problem.ts'
import { always, languageOf, ofPage, represent, type ServePage } from './served-reference.ts'
import { statusJson, statusPage } from './status-page.ts'

export type StatusParts = {
  /** Never rejects. */
  readonly read: () => Promise<ServiceStatus>
  readonly timeZone: string
  readonly clock: Clock
}

const keepForMs = 5_000
const reloadedAfterSeconds = 60

export const createServedStatus = ({ read, timeZone, clock }: StatusParts): ServePage => {
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<ServiceStatus> | undefined
  let shown = ''
  const made = new Map<string, Representation>()
  // Formats of the runtime, which take longer to make than the page.
  const figures: { [language in Language]?: Figures } = {}

  const statusNow = (): Promise<ServiceStatus> => {
    const now = clock.now()
    if (!reading || Math.abs(now - readAt) >= keepForMs) {
      readAt = now
      reading = read()
    }
    return reading
  }
  const make = (name: string, status: ServiceStatus): Representation => {
    if (name !== 'en' && name !== 'bn') return represent(Buffer.from(statusJson(status)), jsonType, always)
    figures[name] ??= createFigures(name, timeZone)
    const page = Buffer.from(statusPage(status, figures[name]))
    // The page has no script that could reload it.
    const headers = `${ofPage}content-language: ${name}\r\nrefresh: ${reloadedAfterSeconds}\r\n`
    return represent(page, 'text/html; charset=utf-8', headers, 'accept-encoding, accept-language')
  }
  return async ({ path, query, acceptLanguage }) => {
    const status = await statusNow()
    const text = JSON.stringify(status)
    if (text !== shown) {
      shown = text
      made.clear()
    }
    const name = path === '/status' ? languageOf(query, acceptLanguage) : path
    const kept = made.get(name) ?? make(name, status)
    made.set(name, kept)
    return kept
  }
}
